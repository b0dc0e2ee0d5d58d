package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds the wait for processes that have ended to leave their cgroup, which takes the kernel microseconds unless it is very busy.
const patience = time.Second

// awaitEmpty waits until the kernel tells that no process is in a cgroup, and reports whether that happened. Only version 2 tells; beside version 1 its
// hierarchy has the same cgroup, which processes leave together with the others.
func awaitEmpty(hierarchy, cgroup string) bool {
	path, ok := eventsFile(hierarchy, cgroup)
	if !ok {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer file.Close()
	content := make([]byte, 256)
	for end := time.Now().Add(patience); ; {
		n, err := unix.Pread(int(file.Fd()), content, 0)
		if err != nil || bytes.Contains(content[:n], []byte("populated 0")) {
			return err == nil || err == unix.ENODEV
		}
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		poll := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(poll, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return false
		}
	}
}

// eventsFile is the file in which version 2 tells about a cgroup with all below it: in the only hierarchy, or in the one that is mounted beside those
// of version 1. Without any there is none.
func eventsFile(hierarchy, cgroup string) (string, bool) {
	for _, dir := range []string{hierarchy, filepath.Join(filepath.Dir(hierarchy), "unified")} {
		if exists(filepath.Join(dir, "cgroup.controllers")) {
			return filepath.Join(dir, cgroup, "cgroup.events"), true
		}
	}
	return "", false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
