package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("second Open: %v, want ErrInUse with the remedy", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(path)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	defer second.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
}

func TestVersion(t *testing.T) {
	for content, want := range map[string]string{"1\n": "", "2": "newer bayplan", "x": "does not hold a number", "": "does not hold a number"} {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, "version"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("version %q: %v, want %q", content, err, want)
		case err == nil:
			d.Close()
			continue
		}
		if kept, _ := os.ReadFile(filepath.Join(path, "version")); string(kept) != content {
			t.Errorf("version %q became %q", content, kept)
		}
		if want != "" {
			// The refusal must not keep the lock.
			_ = os.WriteFile(filepath.Join(path, "version"), []byte("1"), 0o600)
			if d, err := Open(path); err != nil {
				t.Errorf("after a refusal: %v", err)
			} else {
				d.Close()
			}
		}
	}
}
