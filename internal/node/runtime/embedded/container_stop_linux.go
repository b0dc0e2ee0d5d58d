package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopContainer asks the container to end, and ends it when the timeout is over. It is idempotent.
func (r *Runtime) StopContainer(ctx context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	c, err := r.container(request.GetContainerId())
	if status.Code(err) == codes.NotFound {
		return &cri.StopContainerResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.stopContainer(ctx, c, time.Duration(request.GetTimeout())*time.Second); err != nil {
		return nil, fmt.Errorf("stop container %s: %w", c.record.ID, err)
	}
	return &cri.StopContainerResponse{}, nil
}

// stopContainer ends a container that runs. It returns when the exit is known.
func (r *Runtime) stopContainer(ctx context.Context, c *container, grace time.Duration) error {
	if !r.isRunning(c) {
		return nil
	}
	if grace > 0 {
		if err := r.signal(ctx, c, stopSignal(c), false); err != nil {
			return err
		}
		timer := r.config.Clock.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
		}
	}
	if err := r.signal(ctx, c, unix.SIGKILL, true); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Runtime) isRunning(c *container) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.state.Phase == protocol.Running
}

// signal sends a signal. A container that is over needs none.
func (r *Runtime) signal(ctx context.Context, c *container, number unix.Signal, all bool) error {
	s, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return err
	}
	return r.callHelper(ctx, s, c, &protocol.Request{Signal: &protocol.SignalRequest{ID: c.record.ID, Signal: int(number), All: all}})
}

// callAgain is how long to wait before a call that found no helper is made again.
const callAgain = 20 * time.Millisecond

// callHelper makes a call that has nothing to answer, again if the helper was killed under it and another took its place.
func (r *Runtime) callHelper(ctx context.Context, s *sandbox, c *container, request *protocol.Request) error {
	for {
		_, _, err := protocol.Call(ctx, s.socket, request)
		if protocol.HasCode(err, protocol.NotRunning) || protocol.HasCode(err, protocol.NotFound) {
			return nil
		}
		var answered *protocol.Error
		if err == nil || errors.As(err, &answered) || ctx.Err() != nil {
			return err
		}
		select {
		case <-c.exited:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-r.config.Clock.After(callAgain):
		}
	}
}

// stopSignal is the signal that asks the container to end: the pod's wish, else the image's, else SIGTERM.
func stopSignal(c *container) unix.Signal {
	if wanted := c.config.GetStopSignal(); wanted != cri.Signal_SIGNAL_RUNTIME_DEFAULT {
		if number := unix.SignalNum(strings.TrimPrefix(wanted.String(), "SIGNAL_")); number != 0 {
			return number
		}
	}
	name := strings.ToUpper(c.image.Config.StopSignal)
	if name == "" {
		return unix.SIGTERM
	}
	var number int
	if _, err := fmt.Sscanf(name, "%d", &number); err == nil && number > 0 {
		return unix.Signal(number)
	}
	if number := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG")); number != 0 {
		return number
	}
	return unix.SIGTERM
}

// RemoveContainer removes the container, and ends it first if it runs. It is idempotent.
func (r *Runtime) RemoveContainer(ctx context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	c, err := r.container(request.GetContainerId())
	if status.Code(err) == codes.NotFound {
		return &cri.RemoveContainerResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.removeContainer(ctx, c); err != nil {
		return nil, fmt.Errorf("remove container %s: %w", c.record.ID, err)
	}
	return &cri.RemoveContainerResponse{}, nil
}

func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	c.op.Lock()
	defer c.op.Unlock()
	if err := r.stopContainer(ctx, c, 0); err != nil {
		return err
	}
	if s, err := r.sandbox(c.record.SandboxID); err == nil && r.isReady(s) {
		if err := r.callHelper(ctx, s, c, &protocol.Request{Remove: &protocol.RemoveRequest{ID: c.record.ID}}); err != nil {
			return err
		}
	}
	if err := r.clearContainer(c); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.containers, c.record.ID)
	r.release(containerName(c.record.SandboxID, c.config.Metadata), c.record.ID)
	r.mu.Unlock()
	r.announceGone(c)
	return nil
}

// clearContainer removes the container's files. Its log is the agent's.
func (r *Runtime) clearContainer(c *container) error {
	if err := r.unmount(c); err != nil {
		return err
	}
	if err := os.RemoveAll(r.containerDir(c.record.ID)); err != nil {
		return err
	}
	return r.releaseLayers(c)
}
