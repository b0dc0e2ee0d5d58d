package image

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock takes the store's lock, across processes; what it gives releases it.
func (s *Store) lock() (func(), error) {
	file, err := lockFile(filepath.Join(s.root, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

func lockFile(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

// hold opens a lease's file and keeps it locked for as long as the file is open, which tells others that its owner lives.
func hold(path string) (*os.File, error) { return lockFile(path, unix.LOCK_EX) }

// abandoned tells whether no process holds the file.
func abandoned(path string) bool {
	file, err := lockFile(path, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}
