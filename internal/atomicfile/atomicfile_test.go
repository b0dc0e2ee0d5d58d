package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "second, longer", ""} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("got %q, %v; want %q", got, err, content)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left beside the file: %v", entries)
	}
}

func TestFailureKeepsTheFormerContent(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "dir")
	if err := os.MkdirAll(filepath.Join(target, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(target, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left beside the target: %v", entries)
	}
	if err := Write(filepath.Join(dir, "missing", "file"), nil, 0o600); err == nil {
		t.Error("wrote into a directory that is not there")
	}
}
