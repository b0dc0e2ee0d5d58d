package pod

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// exec runs a process inside a container. It answers twice: when the process runs, and when it has ended. A client that hangs up ends it.
func (p *Pod) exec(conn *protocol.Conn, request *protocol.ExecRequest) error {
	c, err := p.running(request.ID)
	if err != nil {
		return err
	}
	var spec specs.Process
	if err := json.Unmarshal(request.Process, &spec); err != nil {
		return fmt.Errorf("process for container %s: %w", request.ID, err)
	}
	process, err := newProcess(&spec)
	if err != nil {
		return err
	}
	finish, err := p.execStdio(conn, request, process, spec.Terminal)
	if err != nil {
		return err
	}
	pid, err := p.runExec(c, process)
	master, ferr := finish()
	if err == nil {
		err = ferr
	}
	if err != nil {
		return fmt.Errorf("exec failed: %w", err)
	}
	defer p.reaper.disown(pid)
	running := &protocol.Reply{Exec: &protocol.ExecState{PID: pid}}
	if master != nil {
		err = conn.Send(running, master)
		_ = master.Close()
	} else {
		err = conn.Send(running)
	}
	if err != nil {
		_ = process.Signal(unix.SIGKILL)
	}
	return conn.Send(&protocol.Reply{Exec: p.awaitExec(conn, process)})
}

// execStdio connects the process to the files of the call, or to a terminal. What it gives is called once the process was started.
func (p *Pod) execStdio(conn *protocol.Conn, request *protocol.ExecRequest, process *libcontainer.Process, terminal bool) (func() (*os.File, error), error) {
	if terminal {
		parent, child, err := socketPair()
		if err != nil {
			return nil, err
		}
		process.ConsoleSocket = child
		return func() (*os.File, error) {
			_ = child.Close() // without this, a process that never started would leave us waiting for its terminal
			return receiveTerminal(parent)
		}, nil
	}
	files, err := takeFiles(conn, request.Stdin)
	if err != nil {
		return nil, err
	}
	if files[0] != nil {
		process.Stdin = files[0]
	}
	process.Stdout, process.Stderr = files[1], files[2]
	return func() (*os.File, error) {
		for _, file := range files {
			if file != nil {
				_ = file.Close()
			}
		}
		return nil, nil
	}, nil
}

func (p *Pod) runExec(c *container, process *libcontainer.Process) (int, error) {
	p.reaper.busy.RLock()
	defer p.reaper.busy.RUnlock()
	if err := c.runtime.Run(process); err != nil {
		return 0, err
	}
	pid, err := process.Pid()
	p.reaper.own(pid)
	return pid, err
}

// awaitExec waits for the end of the process, and brings it about when the client hangs up.
func (p *Pod) awaitExec(conn *protocol.Conn, process *libcontainer.Process) *protocol.ExecState {
	ended := make(chan struct{})
	gone := hangup(conn)
	go func() {
		select {
		case <-gone:
			_ = process.Signal(unix.SIGKILL)
		case <-ended:
		}
	}()
	result, _ := process.Wait()
	close(ended)
	state := &protocol.ExecState{Exited: true, ExitCode: 255}
	if result != nil {
		state.ExitCode = exitCode(result)
	}
	return state
}

// newProcess turns the OCI description of a process into libcontainer's.
func newProcess(spec *specs.Process) (*libcontainer.Process, error) {
	if spec == nil || len(spec.Args) == 0 {
		return nil, fmt.Errorf("the spec has no command")
	}
	process := &libcontainer.Process{
		Args:            spec.Args,
		Env:             spec.Env,
		UID:             int(spec.User.UID),
		GID:             int(spec.User.GID),
		Cwd:             spec.Cwd,
		NoNewPrivileges: &spec.NoNewPrivileges,
		AppArmorProfile: spec.ApparmorProfile,
		Label:           spec.SelinuxLabel,
	}
	for _, gid := range spec.User.AdditionalGids {
		process.AdditionalGroups = append(process.AdditionalGroups, int(gid))
	}
	if size := spec.ConsoleSize; size != nil {
		process.ConsoleWidth, process.ConsoleHeight = uint16(size.Width), uint16(size.Height)
	}
	if c := spec.Capabilities; c != nil {
		process.Capabilities = &configs.Capabilities{
			Bounding: c.Bounding, Effective: c.Effective, Inheritable: c.Inheritable, Permitted: c.Permitted, Ambient: c.Ambient,
		}
	}
	return process, nil
}
