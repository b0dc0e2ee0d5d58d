package embedded

import (
	"context"
	"os"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// watch follows a sandbox's helper in the background, until the sandbox is stopped or the runtime closed. ready, if given, is closed once the
// state of all containers is known.
func (r *Runtime) watch(s *sandbox, ready chan<- struct{}) {
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan struct{})
	s.unwatch = func() {
		cancel()
		<-ended
	}
	r.work.Go(func() {
		defer close(ended)
		r.follow(ctx, s, ready)
	})
}

// follow reads what the helper tells. When the helper was killed it starts another, which takes the containers over.
func (r *Runtime) follow(ctx context.Context, s *sandbox, ready chan<- struct{}) {
	logger := klog.FromContext(ctx)
	for attempt := 0; ctx.Err() == nil; attempt++ {
		told := r.followOnce(ctx, s, ready)
		if told {
			ready, attempt = nil, 0
		}
		if ctx.Err() != nil {
			return
		}
		if attempt >= relaunchLimit {
			logger.Error(nil, "The pod's helper does not stay: giving the pod up", "sandbox", s.record.ID)
			r.lose(s, ready)
			return
		}
		logger.Info("The pod's helper is gone: starting another to take its containers over", "sandbox", s.record.ID)
		if _, err := r.relaunchOf(s).start(); err != nil {
			logger.Error(err, "Could not take the pod over", "sandbox", s.record.ID)
		}
		select {
		case <-ctx.Done():
		case <-r.config.Clock.After(time.Duration(attempt) * 50 * time.Millisecond):
		}
	}
}

// relaunchLimit is how many helpers in a row may end before they have told anything.
const relaunchLimit = 5

// followOnce follows one helper to its end, and tells whether it told anything.
func (r *Runtime) followOnce(ctx context.Context, s *sandbox, ready chan<- struct{}) bool {
	conn, err := protocol.Open(ctx, s.socket, &protocol.Request{Watch: &protocol.WatchRequest{}})
	if err != nil {
		return false
	}
	defer conn.Close()
	defer conn.CloseOn(ctx)()
	first, err := conn.Next()
	if err != nil || first.Hello == nil {
		return false
	}
	r.mu.Lock()
	s.helperPID = first.Hello.PID
	r.mu.Unlock()
	known := map[string]bool{}
	for range first.Hello.Containers {
		reply, err := conn.Next()
		if err != nil || reply.State == nil {
			return false
		}
		known[reply.State.ID] = true
		r.observe(s, reply.State)
	}
	r.forgotten(s, known)
	if ready != nil {
		close(ready)
	}
	for {
		reply, err := conn.Next()
		if err != nil {
			return true
		}
		if reply.State != nil {
			r.observe(s, reply.State)
		}
	}
}

// observe takes over what a helper says of a container. States come from Watch and from Start, and may come twice: they only go forward.
func (r *Runtime) observe(s *sandbox, state *protocol.ContainerState) {
	r.mu.Lock()
	c := r.containers[state.ID]
	if c == nil || state.Phase == "" || c.state.Phase == protocol.Exited || c.state.Phase == state.Phase {
		r.mu.Unlock()
		return
	}
	started := c.state.Phase == ""
	c.state = *state
	over := state.Phase == protocol.Exited
	c.hold(over)
	r.mu.Unlock()
	if started {
		r.announce(state.ID, cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	}
	if !over {
		return
	}
	if err := r.unmount(c); err != nil {
		klog.FromContext(r.ctx).Error(err, "Could not unmount a container's root file system", "sandbox", s.record.ID, "container", state.ID)
	}
	close(c.exited)
	r.announce(state.ID, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// hold opens a pidfd of a container that runs, or closes that of one that is over. Runtime.mu is held.
func (c *container) hold(over bool) {
	if over {
		if c.pidfd != nil {
			_ = c.pidfd.Close()
			c.pidfd = nil
		}
		return
	}
	fd, err := unix.PidfdOpen(c.state.PID, 0)
	if err != nil {
		return // it has ended already, and its helper knows how
	}
	if protocol.StartTicks(c.state.PID) != c.state.StartTicks {
		_ = unix.Close(fd) // the number is another process's now
		return
	}
	c.pidfd = os.NewFile(uintptr(fd), "pidfd")
}

// forgotten ends containers that we think run and that the helper does not know: they were lost with a former helper.
func (r *Runtime) forgotten(s *sandbox, known map[string]bool) {
	for _, c := range r.containersOf(s.record.ID) {
		if r.isRunning(c) && !known[c.record.ID] {
			r.observe(s, r.lostState(c))
		}
	}
}

// lostState is the exit of a container whose end nobody saw.
func (r *Runtime) lostState(c *container) *protocol.ContainerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := c.state
	state.ID, state.Phase, state.PID, state.ExitCode = c.record.ID, protocol.Exited, 0, lostCode
	state.FinishedAt = r.config.Clock.Now().UTC()
	state.Message = "the container ended while nothing watched over it"
	return &state
}

// lostCode is the exit code of such a container, as other runtimes have it.
const lostCode = 255

// lose gives a sandbox up: its containers are over, and it is not ready, so that the agent makes another.
func (r *Runtime) lose(s *sandbox, ready chan<- struct{}) {
	r.mu.Lock()
	s.record.Ready = false
	r.mu.Unlock()
	if err := r.save(s); err != nil {
		klog.FromContext(r.ctx).Error(err, "Could not record that a pod sandbox is lost", "sandbox", s.record.ID)
	}
	r.machine.kill(r.cgroupParent(s))
	r.forgotten(s, nil)
	if ready != nil {
		close(ready)
	}
	r.announce(s.record.ID, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
}
