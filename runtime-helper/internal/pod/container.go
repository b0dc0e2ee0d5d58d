package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	_ "github.com/opencontainers/cgroups/devices" // for its side effect: the device rules of containers
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// container is one that was started here, or taken over from a former helper.
type container struct {
	recordDir string
	stdio     *stdio
	runtime   *libcontainer.Container
	spec      *specs.Spec
	pid       int
	ended     chan struct{} // closed when state says so

	// state is guarded by Pod.mu.
	state protocol.ContainerState
}

func (p *Pod) stateRoot() string { return filepath.Join(p.config.Dir, "libcontainer") }

// start creates a container and runs its command. It answers when the command was executed and that is on disk.
func (p *Pod) start(request *protocol.StartRequest) (*protocol.ContainerState, error) {
	c := &container{recordDir: request.RecordDir, ended: make(chan struct{}), state: protocol.ContainerState{ID: request.ID}}
	if err := p.claim(c); err != nil {
		return nil, err
	}
	process, err := p.launch(c, request)
	if err != nil {
		p.mu.Lock()
		delete(p.containers, request.ID)
		p.mu.Unlock()
		return nil, err
	}
	go p.wait(c, process)
	p.mu.Lock()
	defer p.mu.Unlock()
	state := c.state
	return &state, nil
}

// claim takes the container's id.
func (p *Pod) claim(c *container) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := c.state.ID
	if p.containers[id] != nil {
		return &protocol.Error{Code: protocol.Exists, Message: fmt.Sprintf("container %s was started already", id)}
	}
	p.containers[id] = c
	return nil
}

func (p *Pod) launch(c *container, request *protocol.StartRequest) (_ *libcontainer.Process, err error) {
	c.spec = &specs.Spec{}
	if err := json.Unmarshal(request.Spec, c.spec); err != nil {
		return nil, fmt.Errorf("spec of container %s: %w", request.ID, err)
	}
	// A user namespace is looked into by a process that libcontainer waits for.
	p.reaper.busy.RLock()
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: request.ID, Spec: c.spec, NoNewKeyring: true})
	p.reaper.busy.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("spec of container %s: %w", request.ID, err)
	}
	process, err := newProcess(c.spec.Process)
	if err != nil {
		return nil, err
	}
	process.Init = true
	if c.stdio, err = p.openStdio(request, process, c.spec.Process.Terminal); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.stdio.abandon()
		}
	}()
	if c.runtime, err = libcontainer.Create(p.stateRoot(), request.ID, config); err != nil {
		return nil, fmt.Errorf("failed to create the container: %w", err)
	}
	if err := p.run(c, process); err != nil {
		_ = c.runtime.Destroy()
		return nil, err
	}
	return process, nil
}

// run executes the container's command and records that it did.
func (p *Pod) run(c *container, process *libcontainer.Process) error {
	p.reaper.busy.RLock()
	err := c.runtime.Run(process)
	if err == nil {
		c.pid, err = process.Pid()
		p.reaper.own(c.pid)
	}
	p.reaper.busy.RUnlock()
	if err != nil {
		return err
	}
	if err := c.stdio.started(); err != nil {
		return p.giveUp(c, process, err)
	}
	state := c.state
	state.Phase, state.PID, state.StartTicks, state.StartedAt = protocol.Running, c.pid, protocol.StartTicks(c.pid), p.now().UTC()
	if err := writeRecord(c.recordDir, &state); err != nil {
		return p.giveUp(c, process, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.state = state
	p.changed(c)
	return nil
}

// giveUp ends a container that runs but cannot be held.
func (p *Pod) giveUp(c *container, process *libcontainer.Process, err error) error {
	_ = c.runtime.Signal(unix.SIGKILL)
	_, _ = process.Wait()
	p.reaper.disown(c.pid)
	return err
}

// wait sees a container to its end.
func (p *Pod) wait(c *container, process *libcontainer.Process) {
	result, err := process.Wait()
	p.reaper.disown(c.pid)
	state := protocol.ContainerState{ExitCode: 255}
	if result != nil {
		state.ExitCode = exitCode(result)
	} else {
		state.Message = fmt.Sprintf("the exit status was lost: %v", err)
	}
	p.finish(c, state)
}

// finish makes an exit known: records it, lets go of what the container held, and tells the watchers, in this order. Of exit, the
// code, and the message if there is one, are taken.
func (p *Pod) finish(c *container, exit protocol.ContainerState) {
	finished := p.now().UTC()
	c.killRest()
	oom := exit.ExitCode != 0 && c.oomKilled()
	c.stdio.finish()
	p.mu.Lock()
	state := c.state
	p.mu.Unlock()
	state.Phase, state.PID, state.FinishedAt = protocol.Exited, 0, finished
	state.ExitCode, state.OOMKilled, state.Message = exit.ExitCode, oom, exit.Message
	if err := writeRecord(c.recordDir, &state); err != nil {
		fmt.Fprintln(os.Stderr, "bayplan-pod:", err)
	}
	if err := c.destroy(); err != nil {
		fmt.Fprintf(os.Stderr, "bayplan-pod: container %s: %v\n", state.ID, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.state = state
	close(c.ended)
	p.changed(c)
}

// killRest ends processes that outlived the container's first one, which happens where the PID namespace is not the container's own.
func (c *container) killRest() {
	if c.runtime != nil {
		_ = c.runtime.Signal(unix.SIGKILL)
	}
}

// oomKilled reads from the container's cgroup whether the kernel killed anything in it for want of memory.
func (c *container) oomKilled() bool {
	if c.runtime == nil {
		return false
	}
	config := c.runtime.Config()
	cgroup, err := manager.New(config.Cgroups)
	if err != nil {
		return false
	}
	count, err := cgroup.OOMKillCount()
	return err == nil && count > 0
}

// destroy removes the cgroup and libcontainer's state. A cgroup is busy for a moment after its last process was killed.
func (c *container) destroy() error {
	if c.runtime == nil {
		return nil
	}
	var err error
	for delay := time.Millisecond; delay < 500*time.Millisecond; delay *= 2 {
		if err = c.runtime.Destroy(); err == nil || !errors.Is(err, libcontainer.ErrRunning) && !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(delay)
	}
	return err
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		return waitCode(unix.WaitStatus(status))
	}
	return state.ExitCode()
}

func waitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
