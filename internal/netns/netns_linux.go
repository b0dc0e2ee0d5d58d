package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Namespace is an open network namespace. Its methods may be called by many goroutines at once. It stays usable after Delete of its path,
// until Close.
type Namespace struct {
	path string
	mu   sync.RWMutex // held for reading while the descriptor is in use, for writing by Close
	file *os.File     // nil when closed
}

// Create makes a network namespace and pins it at path, or opens the one that is pinned there. Folders above path are made. A new
// namespace has nothing but a loopback interface that is down.
func Create(path string) (*Namespace, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	defer file.Close()
	// Two callers that find no namespace hold the same plain file: the lock lets one of them mount and the other find the mount.
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("network namespace %s: locking its file: %w", path, err)
	}
	pinned, err := isPinned(path)
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	if !pinned {
		if err := makePinned(path, file); err != nil {
			return nil, fmt.Errorf("network namespace %s: %w", path, err)
		}
	}
	return Open(path)
}

// Open opens the network namespace that is pinned at path. The error is fs.ErrNotExist when nothing is there.
func Open(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	if kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		file.Close()
		return nil, fmt.Errorf("network namespace %s: no network namespace is pinned there: %w", path, fs.ErrInvalid)
	}
	return &Namespace{path: path, file: file}, nil
}

// Delete removes the pin at path. The namespace itself goes with its last process, socket and open descriptor. Deleting what is not
// there is no error; a file that holds data is not touched.
func Delete(path string) error {
	for {
		pinned, err := isPinned(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", path, err)
		}
		if !pinned {
			break
		}
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("network namespace %s: unmounting: %w", path, err)
		}
	}
	info, err := os.Lstat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() != 0) {
		return fmt.Errorf("network namespace %s: not removed, since it is no file that pins a network namespace: %w", path, fs.ErrInvalid)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("network namespace: %w", err)
	}
	return nil
}

// Path is where the namespace was pinned when it was opened.
func (n *Namespace) Path() string { return n.path }

// Close closes the descriptor. Sockets that were made inside go on, and the pin stays.
func (n *Namespace) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		return nil
	}
	err := n.file.Close()
	n.file = nil
	return err
}

// WithFd calls f with a descriptor of the namespace, which stays valid until f returns. It is what netlink asks for to put an interface
// into the namespace.
func (n *Namespace) WithFd(f func(fd int) error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.file == nil {
		return fmt.Errorf("network namespace %s: %w", n.path, fs.ErrClosed)
	}
	return f(int(n.file.Fd()))
}

// isPinned tells whether a namespace is mounted at path.
func isPinned(path string) (bool, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return false, err
	}
	return stat.Type == unix.NSFS_MAGIC, nil
}

// makePinned makes a namespace and mounts it on the plain file at path.
func makePinned(path string, file *os.File) error {
	if info, err := file.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() || info.Size() != 0 {
		return fmt.Errorf("a file that is no namespace is there: %w", fs.ErrExist)
	}
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a namespace (root is needed): %w", err)
		}
		if err := unix.Mount(threadNamespace, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pinning the new namespace: %w", err)
		}
		return nil
	})
}
