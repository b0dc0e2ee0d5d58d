package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"
)

// lostExit is the exit code of a container whose end nobody saw.
const lostExit = 255

// recover takes over the containers of a former helper, which was killed. Their processes are children of somebody else now.
func (p *Pod) recover(list []protocol.RecoverRequest) {
	for i := range list {
		if c := p.takeOver(&list[i]); c != nil {
			p.containers[c.state.ID] = c
		}
	}
}

// takeOver finds a container by its record. One that never ran has none, and there is nothing to take over.
func (p *Pod) takeOver(request *protocol.RecoverRequest) *container {
	record, err := readRecord(request.RecordDir)
	if err != nil {
		p.clearFailed(request.ID)
		return nil
	}
	c := &container{recordDir: request.RecordDir, ended: make(chan struct{}), state: *record, pid: record.PID}
	if runtime, err := libcontainer.Load(p.stateRoot(), request.ID); err == nil {
		c.runtime = runtime
	}
	if record.Phase == protocol.Exited {
		close(c.ended)
		_ = c.destroy()
		return c
	}
	c.stdio = p.rejoinStdio(request)
	pidfd := request.Pidfd
	if pidfd == 0 {
		pidfd = openPidfd(record)
	}
	if pidfd < 0 {
		go p.finish(c, protocol.ContainerState{ExitCode: lostExit, Message: "the container ended while nothing watched over it"})
		return c
	}
	go p.waitOther(c, pidfd)
	return c
}

// openPidfd finds the recorded process; -1 means that it is gone.
func openPidfd(record *protocol.ContainerState) int {
	pidfd, err := unix.PidfdOpen(record.PID, 0)
	if err != nil {
		return -1
	}
	if protocol.StartTicks(record.PID) != record.StartTicks { // the number is another process's now
		_ = unix.Close(pidfd)
		return -1
	}
	return pidfd
}

// clearFailed removes what a start left that was cut off before it could be recorded.
func (p *Pod) clearFailed(id string) {
	runtime, err := libcontainer.Load(p.stateRoot(), id)
	if err != nil {
		_ = os.RemoveAll(filepath.Join(p.stateRoot(), id))
		return
	}
	_ = runtime.Signal(unix.SIGKILL)
	c := &container{runtime: runtime}
	if err := c.destroy(); err != nil {
		fmt.Fprintf(os.Stderr, "bayplan-pod: container %s: %v\n", id, err)
	}
}

// rejoinStdio opens the FIFOs of a running container again. A terminal died with its helper, and there are no FIFOs then.
func (p *Pod) rejoinStdio(request *protocol.RecoverRequest) *stdio {
	s := &stdio{dir: filepath.Join(p.config.Dir, "io"), id: request.ID}
	if err := s.openLog(request.LogPath, p.now); err != nil {
		fmt.Fprintf(os.Stderr, "bayplan-pod: container %s: %v\n", request.ID, err)
	}
	for _, name := range []string{"stdout", "stderr"} {
		if err := s.addPump(name); err != nil {
			return s
		}
	}
	s.runPumps()
	return s
}

// waitOther waits for a process that is not our child.
func (p *Pod) waitOther(c *container, pidfd int) {
	defer unix.Close(pidfd)
	pollPidfd(pidfd, unix.POLLIN, -1)
	code, known := zombieExit(&c.state)
	if !known {
		pollPidfd(pidfd, 0, reapPatience) // 0 waits for POLLHUP: the process was reaped
		code, known = exitOf(pidfd)
	}
	exit := protocol.ContainerState{ExitCode: code}
	if !known {
		exit = protocol.ContainerState{ExitCode: lostExit, Message: "the exit status is unknown: the helper that would have got it was killed, and this kernel keeps it for nobody else (Linux 6.15 does)"}
	}
	p.finish(c, exit)
}

// reapPatience is how long the process's new parent may take to reap it, in milliseconds. The kernel tells the exit status only then.
const reapPatience = 2000

func pollPidfd(pidfd int, events int16, milliseconds int) {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: events}}
	for {
		if _, err := unix.Poll(poll, milliseconds); err != unix.EINTR {
			return
		}
	}
}

// zombieExit reads the exit status of a process that has ended and was not reaped yet.
func zombieExit(record *protocol.ContainerState) (int, bool) {
	fields := protocol.StatFields(record.PID)
	if len(fields) < 50 || string(fields[0]) != "Z" || string(fields[19]) != strconv.FormatUint(record.StartTicks, 10) {
		return 0, false
	}
	status, err := strconv.ParseUint(string(fields[49]), 10, 32) // field 52 of /proc/PID/stat
	return waitCode(unix.WaitStatus(uint32(status))), err == nil
}

// exitOf asks the kernel how the reaped process ended, if it can tell.
func exitOf(pidfd int) (int, bool) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if err := unix.IoctlPidfdInfo(pidfd, &info); err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, false
	}
	return waitCode(unix.WaitStatus(uint32(info.Exit_code))), true
}
