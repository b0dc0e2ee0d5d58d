package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a file system in memory of so many bytes on a new directory, for the time of the test.
func mountSmall(t *testing.T, bytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small file system is mounted by root only")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("this machine lets nobody mount a file system in memory: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("the small file system stays mounted: %v", err)
		}
	})
	return dir
}

// TestFullDisk: writers go on until the disk is full. What was acknowledged is there when the store is opened again on a disk with room.
func TestFullDisk(t *testing.T) {
	mount := mountSmall(t, 160<<20)
	m := &model{sure: map[string]string{}, maybe: map[string]string{}}
	said := untilFull(t, mount+"/etcd", m)
	if m.next < 100 {
		t.Errorf("only %d operations before the disk was full; the writer said:\n%s", m.next, said)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, mount+"/etcd") || !strings.HasSuffix(last, "no space left on device; what was acknowledged is kept: make room on the disk and start again") {
		t.Errorf("its last words are: %s", last)
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", 512<<20)); err != nil {
		t.Fatal(err)
	}
	s := open(t, mount+"/etcd")
	defer s.Close()
	m.check(t, s)
	put(t, s, "after", "the disk has room")
}

// untilFull runs the writers until they end, and returns what they said on the way down.
func untilFull(t *testing.T, dir string, m *model) string {
	t.Helper()
	cmd := writerCommand(dir, 0, 100<<10)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		m.apply(lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the writer ended with %v, want exit status 1", err)
	}
	return stderr.String()
}
