//go:build unix

package datadir

import "golang.org/x/sys/unix"

// freeBytes is what a process without privileges may still write.
func freeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
