package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/bayplan/bayplan/internal/atomicfile"
	"github.com/bayplan/bayplan/internal/filelock"
)

// Process says which process uses a directory.
type Process struct {
	PID     int
	Version string
	// Socket is the unix socket on which it answers its administrator.
	Socket string
}

// maxSocketPath is what every system takes as the path of a socket.
const maxSocketPath = 100

// Listen makes the socket on which the process answers, and says in the directory where it is. Who may enter the directory may use it.
// The file goes when the listener is closed; one that a killed process left is replaced.
func (d *Dir) Listen(version string) (net.Listener, error) {
	path := d.Path("socket")
	if len(path) > maxSocketPath {
		dir, err := os.MkdirTemp("", "bayplan-")
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, "socket")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the socket of the data directory: %w", err)
	}
	data, err := json.Marshal(Process{os.Getpid(), version, path})
	if err == nil {
		err = atomicfile.Write(d.Path("process"), data, 0o600)
	}
	l := &socket{Listener: listener, dir: d}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

type socket struct {
	net.Listener
	dir  *Dir
	once sync.Once
	err  error
}

func (s *socket) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}

func (s *socket) close() error {
	err := s.Listener.Close()
	if dir := filepath.Dir(s.Addr().String()); dir != s.dir.path {
		_ = os.Remove(dir)
	}
	if removed := os.Remove(s.dir.Path("process")); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// ErrNotRunning is returned when no process uses the directory.
var ErrNotRunning = errors.New("no cluster runs on the data directory")

// Running finds the process that uses the directory at path, and a client that speaks to it (at the host name "bayplan"). Only the process that holds the
// lock has the socket, so that no other one is ever taken for it.
func Running(path string) (Process, *http.Client, error) {
	var p Process
	used, err := InUse(path)
	if err != nil {
		return p, nil, err
	}
	if !used {
		return p, nil, fmt.Errorf("%w %s", ErrNotRunning, path)
	}
	data, err := os.ReadFile(filepath.Join(path, "process"))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, nil, fmt.Errorf("a process uses %s, and it does not say which: %w", path, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.Socket)
	}
	return p, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, nil
}

// InUse reports whether a process holds the directory's lock. It makes nothing.
func InUse(path string) (bool, error) {
	file := filepath.Join(path, "lock")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := filelock.TryLock(file)
	if errors.Is(err, filelock.ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("data directory: %w", err)
	}
	return false, lock.Close()
}
