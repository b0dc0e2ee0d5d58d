package filelock

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second holder: %v", err)
	}
	got := make(chan error)
	go func() {
		next, err := Lock(path)
		if err == nil {
			err = next.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := Lock(filepath.Join(path, "below-a-file")); err == nil {
		t.Error("a lock where no file can be")
	}
}
