package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// StopPodSandbox ends the pod: its containers, its network, its namespaces. It is idempotent.
func (r *Runtime) StopPodSandbox(ctx context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if status.Code(err) == codes.NotFound {
		return &cri.StopPodSandboxResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.op.Lock()
	defer s.op.Unlock()
	if err := r.stopSandbox(ctx, s); err != nil {
		return nil, fmt.Errorf("stop pod sandbox %s: %w", s.record.ID, err)
	}
	return &cri.StopPodSandboxResponse{}, nil
}

// stopSandbox ends the pod. s.op is held.
func (r *Runtime) stopSandbox(ctx context.Context, s *sandbox) error {
	for _, c := range r.containersOf(s.record.ID) {
		if err := r.stopContainer(ctx, c, 0); err != nil {
			return err
		}
	}
	if !r.isReady(s) {
		return nil
	}
	if err := r.endSandbox(ctx, s); err != nil {
		return err
	}
	if err := r.clearRunDir(s.record.ID); err != nil {
		return err
	}
	r.removePodCgroup(s)
	r.mu.Lock()
	s.record.Ready, s.record.Addresses = false, nil
	r.mu.Unlock()
	if err := r.save(s); err != nil {
		return err
	}
	r.announce(s.record.ID, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return nil
}

func (r *Runtime) isReady(s *sandbox) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.record.Ready
}

// endSandbox takes the network, the helper and the namespaces away; what is gone already is no error.
func (r *Runtime) endSandbox(ctx context.Context, s *sandbox) error {
	if r.config.Network != nil && s.owns("net") {
		if err := r.config.Network.TearDown(ctx, s.record.ID, r.pinPath(s, "net")); err != nil {
			return fmt.Errorf("network: %w", err)
		}
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	if err := r.quitHelper(ctx, s); err != nil {
		return err
	}
	if err := r.endPause(s); err != nil {
		return err
	}
	return unpin(filepath.Join(r.runDir(s.record.ID), "ns"))
}

// endPause ends process 1 of the pod's shared PID namespace, in case that its helper was killed and could not.
func (r *Runtime) endPause(s *sandbox) error {
	if !s.owns("pid") {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(r.runDir(s.record.ID), protocol.PauseName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var pid int
	var ticks uint64
	if _, err := fmt.Sscan(string(text), &pid, &ticks); err != nil {
		return fmt.Errorf("process 1 of the pod: %w", err)
	}
	if pid > 1 && protocol.StartTicks(pid) == ticks {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return nil
}

// RemovePodSandbox removes the pod with all its containers. It is idempotent.
func (r *Runtime) RemovePodSandbox(ctx context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if status.Code(err) == codes.NotFound {
		return &cri.RemovePodSandboxResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.op.Lock()
	defer s.op.Unlock()
	if err := r.stopSandbox(ctx, s); err != nil {
		return nil, fmt.Errorf("remove pod sandbox %s: %w", s.record.ID, err)
	}
	for _, c := range r.containersOf(s.record.ID) {
		if err := r.removeContainer(ctx, c); err != nil {
			return nil, fmt.Errorf("remove pod sandbox %s: %w", s.record.ID, err)
		}
	}
	last := r.sandboxStatus(s)
	if err := r.clearSandbox(ctx, s); err != nil {
		return nil, fmt.Errorf("remove pod sandbox %s: %w", s.record.ID, err)
	}
	r.mu.Lock()
	delete(r.sandboxes, s.record.ID)
	r.release(sandboxName(s.config.Metadata), s.record.ID)
	r.mu.Unlock()
	r.events.publish(&cri.ContainerEventResponse{
		ContainerId: s.record.ID, ContainerEventType: cri.ContainerEventType_CONTAINER_DELETED_EVENT,
		CreatedAt: r.config.Clock.Now().UnixNano(), PodSandboxStatus: last,
	})
	return &cri.RemovePodSandboxResponse{}, nil
}

// clearSandbox removes every trace of a sandbox that has no container any more.
func (r *Runtime) clearSandbox(ctx context.Context, s *sandbox) error {
	if err := r.endSandbox(ctx, s); err != nil {
		return err
	}
	if err := r.clearRunDir(s.record.ID); err != nil {
		return err
	}
	r.removePodCgroup(s)
	return os.RemoveAll(r.sandboxDir(s.record.ID))
}

// removePodCgroup removes the pod's cgroup, if it is one of this node's and no newer sandbox of the pod is in it. The agent may have made it, but
// nobody else is told when it is empty.
func (r *Runtime) removePodCgroup(s *sandbox) {
	parent := r.cgroupParent(s)
	if !strings.HasPrefix(parent, r.config.CgroupParent+"/") {
		return
	}
	r.mu.Lock()
	for _, other := range r.sandboxes {
		if other != s && other.record.Ready && r.cgroupParent(other) == parent {
			r.mu.Unlock()
			return
		}
	}
	r.mu.Unlock()
	r.machine.removeCgroups(parent)
}

// clearRunDir removes a sandbox's directory below RunDir, but never what is mounted there.
func (r *Runtime) clearRunDir(id string) error {
	mounts, err := mountsBelow(r.runDir(id))
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL {
			return fmt.Errorf("unmount %s: %w", mount, err)
		}
	}
	return os.RemoveAll(r.runDir(id))
}

// quitHelper makes the helper end, and waits until it has: a process that is about to end still keeps its cgroup from being removed.
func (r *Runtime) quitHelper(ctx context.Context, s *sandbox) error {
	r.mu.Lock()
	pid := s.helperPID
	r.mu.Unlock()
	if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
		defer unix.Close(pidfd)
		defer awaitExit(pidfd)
	}
	_, _, err := protocol.Call(ctx, s.socket, &protocol.Request{Quit: &protocol.QuitRequest{}})
	var refused *protocol.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("end the pod's helper: %w", err)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED) {
		klog.FromContext(ctx).V(2).Info("The pod's helper hung up", "sandbox", s.record.ID, "err", err)
	}
	return nil
}

// exitPatience bounds how long a helper that said goodbye may take to be gone, in milliseconds.
const exitPatience = 1000

func awaitExit(pidfd int) {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, exitPatience); err != unix.EINTR {
			return
		}
	}
}
