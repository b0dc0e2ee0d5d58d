//go:build !linux

package image

// Mount needs Linux.
func (s *Store) Mount(*Image, string, string, *Mapping) error { return errLinux }

// Unmount needs Linux.
func Unmount(string) error { return errLinux }

// MountReadOnly needs Linux.
func (s *Store) MountReadOnly(*Image, string, *Mapping) error { return errLinux }
