package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds the wait for processes that have ended to leave their cgroup, which takes the kernel microseconds unless it is very busy.
const patience = time.Second

// awaitEmpty waits until the kernel tells that no process is in a cgroup, and reports whether that happened. Only version 2 tells; beside version 1 its
// hierarchy has the same cgroup, which processes leave together with the others.
func awaitEmpty(dir string) bool {
	path, ok := eventsFile(dir)
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

// eventsFile is the file in which version 2 tells about the cgroup that is dir in some hierarchy.
func eventsFile(dir string) (string, bool) {
	if path := filepath.Join(dir, "cgroup.events"); exists(path) {
		return path, true
	}
	inside, ok := strings.CutPrefix(dir, Root+"/")
	_, group, below := strings.Cut(inside, "/")
	path := filepath.Join(Root, "unified", group, "cgroup.events")
	return path, ok && below && exists(path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
