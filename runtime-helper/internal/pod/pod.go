// Package pod is the helper's inside: it holds the containers of one pod.
//
// Calls come in over the socket (server.go), one goroutine each. Start turns an OCI spec into a libcontainer container (container.go),
// connects its output to FIFOs that outlive this process (stdio.go) and waits for its end in a goroutine. Each change of a container
// is first made durable as a record (record.go) and then told to whoever watches. When a former helper of the pod was killed, recover.go takes its
// containers over from the records. Orphans that end up as children of this process are reaped in reap.go.
package pod

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
)

// Pod is the one pod that this process holds.
type Pod struct {
	config   *protocol.PodConfig
	listener *net.UnixListener
	pause    *os.Process
	pausePID int
	now      func() time.Time
	reaper   reaper

	mu         sync.Mutex
	containers map[string]*container
	watchers   map[*watcher]struct{}
}

// New prepares the namespaces that this process was started in and listens on the pod's socket.
func New(config *protocol.PodConfig) (*Pod, error) {
	p := &Pod{
		config:     config,
		now:        time.Now,
		containers: map[string]*container{},
		watchers:   map[*watcher]struct{}{},
	}
	p.reaper.init()
	_ = os.WriteFile("/proc/self/comm", []byte("bayplan-pod"), 0) // the binary has no name of its own to show
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of orphans: %w", err)
	}
	if err := p.joinCgroups(); err != nil {
		return nil, err
	}
	if err := p.prepareNamespaces(); err != nil {
		return nil, err
	}
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.recover(config.Recover)
	go p.reapOnSignal()
	return p, nil
}

// joinCgroups leaves the agent's cgroup, so that nothing which ends that group ends the pod.
func (p *Pod) joinCgroups() error {
	for _, file := range p.config.CgroupProcs {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

func (p *Pod) listen() error {
	path := filepath.Join(p.config.Dir, protocol.SocketName)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	// The name given to the kernel is relative, since a socket's path must stay under 108 bytes.
	if err := os.Chdir(p.config.Dir); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: protocol.SocketName, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false)
	p.listener = listener
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return os.Chdir("/")
}

// Hello describes this helper.
func (p *Pod) Hello() *protocol.Hello {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello()
}

func (p *Pod) hello() *protocol.Hello {
	return &protocol.Hello{
		Version:    protocol.Version,
		PID:        os.Getpid(),
		SandboxPID: p.pausePID,
		Containers: len(p.containers),
	}
}

// ReleaseStdio lets go of the pipes to the agent. Standard error stays: it is a log file.
func (p *Pod) ReleaseStdio() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	for fd := range 2 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
}

// watcher collects what one Watch call has still to be told.
type watcher struct {
	pending []*protocol.ContainerState
	wake    chan struct{}
}

// changed tells all watchers the container's new state. p.mu is held.
func (p *Pod) changed(c *container) {
	state := c.state
	for w := range p.watchers {
		w.pending = append(w.pending, &state)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// watch starts to watch: Hello and what is pending then are one consistent picture.
func (p *Pod) watch() (*watcher, *protocol.Hello) {
	w := &watcher{wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		state := c.state
		w.pending = append(w.pending, &state)
	}
	p.watchers[w] = struct{}{}
	w.wake <- struct{}{}
	return w, p.hello()
}

func (p *Pod) unwatch(w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, w)
}

func (p *Pod) takePending(w *watcher) []*protocol.ContainerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending := w.pending
	w.pending = nil
	return pending
}

// find gives the container of that id, or the error that a caller is told.
func (p *Pod) find(id string) (*container, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.containers[id]
	if c == nil {
		return nil, &protocol.Error{Code: protocol.NotFound, Message: fmt.Sprintf("container %s is not in pod sandbox %s", id, p.config.SandboxID)}
	}
	return c, nil
}

// running gives the container if it has a process.
func (p *Pod) running(id string) (*container, error) {
	c, err := p.find(id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.state.Phase != protocol.Running {
		return nil, &protocol.Error{Code: protocol.NotRunning, Message: fmt.Sprintf("container %s is not running", id)}
	}
	return c, nil
}
