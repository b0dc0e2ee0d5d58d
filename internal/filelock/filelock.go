// Package filelock keeps processes from one another's way by locks on files. A lock ends with its holder, however that ends; the file stays.
package filelock

import (
	"errors"
	"fmt"
	"os"
)

// ErrHeld is returned when another holds the lock.
var ErrHeld = errors.New("held by another")

// Lock waits until it holds the lock of the file at path, which it makes when it is not there. Closing the file lets go of it.
func Lock(path string) (*os.File, error) { return open(path, true) }

// TryLock is Lock that returns ErrHeld in place of waiting.
func TryLock(path string) (*os.File, error) { return open(path, false) }

func open(path string, wait bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file, wait); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}
