package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

// checkHostPath makes sure that the path is what its type says, and makes it when the type says so.
func checkHostPath(h *v1.HostPathVolumeSource) error {
	if h.Type == nil || *h.Type == v1.HostPathUnset {
		return nil
	}
	info, err := os.Stat(h.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return fmt.Errorf("hostPath %s: %w", h.Path, err)
	}
	fail := func(what string) error { return fmt.Errorf("hostPath type check failed: %s is not %s", h.Path, what) }
	switch *h.Type {
	case v1.HostPathDirectoryOrCreate:
		if missing {
			return os.MkdirAll(h.Path, 0o755)
		}
		if !info.IsDir() {
			return fail("a directory")
		}
	case v1.HostPathDirectory:
		if missing || !info.IsDir() {
			return fail("a directory")
		}
	case v1.HostPathFileOrCreate:
		if missing {
			return createFile(h.Path)
		}
		if info.IsDir() {
			return fail("a file")
		}
	case v1.HostPathFile:
		if missing || !info.Mode().IsRegular() {
			return fail("a file")
		}
	case v1.HostPathSocket:
		if missing || info.Mode()&fs.ModeSocket == 0 {
			return fail("a socket file")
		}
	case v1.HostPathCharDev:
		if missing || info.Mode()&fs.ModeCharDevice == 0 {
			return fail("a character device")
		}
	case v1.HostPathBlockDev:
		if missing || info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
			return fail("a block device")
		}
	default:
		return fmt.Errorf("hostPath %s has the unknown type %q", h.Path, *h.Type)
	}
	return nil
}

// createFile makes an empty file; its directory must be there.
func createFile(path string) error {
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("hostPath: %w", err)
	}
	return f.Close()
}
