package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
)

// launch is how a helper process is started.
type launch struct {
	binary *os.File
	log    string
	config *protocol.PodConfig
	// clone are the namespaces that are made for the pod, join the files of those that it enters.
	clone uintptr
	join  []string
	// files are handed down to the helper, from descriptor 3 on.
	files []*os.File
}

// helperPatience bounds the start of a helper; it takes some 10 ms on a quiet machine.
const helperPatience = 30 * time.Second

// start starts the process and waits until it answers.
func (l *launch) start() (*protocol.Hello, error) {
	frame, err := protocol.Encode(l.config)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(l.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the pod helper: %w", err)
	}
	defer log.Close()
	answer, output, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	cmd := exec.Command(executable(l.binary), "serve")
	cmd.Args[0] = "bayplan-pod"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(frame), output, log
	cmd.ExtraFiles = l.files
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: l.clone}
	err = inNamespaces(l.join, cmd.Start)
	_ = output.Close()
	if err != nil {
		return nil, fmt.Errorf("start the pod helper: %w", err)
	}
	go func() { _ = cmd.Wait() }() // reaps; who watches the helper's socket learns of its end
	hello, err := firstAnswer(answer)
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("start the pod helper: %w", err)
	}
	return hello, nil
}

func firstAnswer(answer *os.File) (*protocol.Hello, error) {
	_ = answer.SetReadDeadline(time.Now().Add(helperPatience))
	var reply protocol.Reply
	if err := protocol.Read(answer, &reply); err != nil {
		return nil, fmt.Errorf("it gave no answer (its log may tell why): %w", err)
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	if reply.Hello == nil {
		return nil, errors.New("its answer is not a greeting")
	}
	return reply.Hello, nil
}

// inNamespaces calls f on a thread that has entered the namespaces, which a child process inherits. A thread that entered any is
// thrown away, since other goroutines must not run on it.
func inNamespaces(paths []string, f func() error) error {
	if len(paths) == 0 {
		return f()
	}
	result := make(chan error, 1)
	go onSpareThread(func() { result <- enterAnd(paths, f) })
	return <-result
}

// onSpareThread calls f on a thread that ends with the goroutine. That must not be the process's first thread: Go cannot end that one, and
// what /proc says of the process it says of that thread.
func onSpareThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f() // the thread is never unlocked, so it ends with the goroutine
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() { // runs elsewhere, as this goroutine occupies the first thread
		defer close(done)
		onSpareThread(f)
	}()
	<-done
}

func enterAnd(paths []string, f func() error) error {
	for _, path := range paths {
		if err := enter(path); err != nil {
			return err
		}
	}
	return f()
}

func enter(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, 0); err != nil {
		return fmt.Errorf("enter namespace %s: %w", path, err)
	}
	return nil
}

// unpin lets go of all namespaces that are pinned in a directory.
func unpin(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("unpin namespace %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// mountsBelow gives the mount points below a directory, the inner before the outer.
func mountsBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.SplitSeq(string(table), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescapeMount(fields[4]); strings.HasPrefix(point, dir+"/") {
			found = append([]string{point}, found...)
		}
	}
	return found, nil
}

// unescapeMount undoes the kernel's octal escapes of blanks in mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
