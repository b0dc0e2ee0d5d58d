package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// threadNamespace is the network namespace of the thread that opens it. (/proc/self would be that of the process's first thread.)
const threadNamespace = "/proc/thread-self/ns/net"

// errGone is what Do answers when its function ended its goroutine, as testing.T.FailNow does.
var errGone = errors.New("the function ended its goroutine inside the namespace")

// Do runs f on a thread of its own inside the namespace and waits for it. Goroutines that f starts run outside. A panic of f is not
// caught.
func (n *Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return f()
	})
}

// enter moves the calling thread into the namespace.
func (n *Namespace) enter() error {
	return n.WithFd(func(fd int) error {
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering network namespace %s (root is needed): %w", n.path, err)
		}
		return nil
	})
}

// onThread runs f on a goroutine that is locked to its thread, so that f may change the thread's network namespace. Afterwards the thread
// goes back to the namespace that it came from. Where that fails, the goroutine ends while locked, and the Go runtime throws the thread
// away: no other goroutine ever runs in a foreign namespace.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { done <- err }()
		back, openErr := lockThread()
		if openErr != nil {
			err = openErr
			return
		}
		defer back()
		err = f()
	}()
	return <-done
}

// lockThread locks the goroutine to its thread and returns the function that takes the thread back to where it is now and unlocks it. The
// function may be called more than once.
func lockThread() (back func() error, err error) {
	runtime.LockOSThread()
	home, err := os.Open(threadNamespace)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("the thread's network namespace: %w", err)
	}
	return func() error {
		if home == nil {
			return nil
		}
		defer func() { home.Close(); home = nil }()
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("leaving a network namespace: %w", err)
		}
		runtime.UnlockOSThread()
		return nil
	}, nil
}
