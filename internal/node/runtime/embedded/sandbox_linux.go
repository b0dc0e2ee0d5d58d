package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// sandbox is a pod sandbox of this runtime. record is guarded by Runtime.mu; op serialises what changes the sandbox as a whole.
type sandbox struct {
	op     sync.Mutex
	record sandboxRecord
	config *cri.PodSandboxConfig // never changed
	socket string
	// helperPID is the helper that was last heard of.
	helperPID int
	// unwatch ends the watch over the helper.
	unwatch context.CancelFunc
}

func sandboxName(m *cri.PodSandboxMetadata) string {
	return fmt.Sprintf("pod sandbox %s/%s (uid %s, attempt %d)", m.GetNamespace(), m.GetName(), m.GetUid(), m.GetAttempt())
}

func (s *sandbox) namespaces() *cri.NamespaceOption {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

// RunPodSandbox makes a pod's namespaces and network and starts the process that holds them.
func (r *Runtime) RunPodSandbox(ctx context.Context, request *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	config := request.GetConfig()
	if config.GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "pod sandbox: config.metadata is not set")
	}
	if request.GetRuntimeHandler() != "" {
		return nil, status.Errorf(codes.InvalidArgument, "pod sandbox: runtime handler %q: this runtime has only its default one, \"\"", request.GetRuntimeHandler())
	}
	if err := checkSandbox(config); err != nil {
		return nil, err
	}
	encoded, err := encodeSandboxConfig(config)
	if err != nil {
		return nil, err
	}
	if config, err = decodeSandboxConfig(encoded); err != nil { // a copy: the caller keeps its own
		return nil, err
	}
	s := &sandbox{config: config, record: sandboxRecord{
		ID: newID(), Config: encoded, CreatedAt: r.config.Clock.Now().UTC(), Boot: r.boot,
	}}
	s.socket = filepath.Join(r.runDir(s.record.ID), protocol.SocketName)
	if err := r.reserve(sandboxName(config.Metadata), s.record.ID); err != nil {
		return nil, err
	}
	if err := r.makeSandbox(ctx, s); err != nil {
		cleared := r.clearSandbox(context.WithoutCancel(ctx), s)
		r.mu.Lock()
		r.release(sandboxName(config.Metadata), s.record.ID)
		r.mu.Unlock()
		return nil, errors.Join(fmt.Errorf("%s: %w", sandboxName(config.Metadata), err), cleared)
	}
	r.announce(s.record.ID, cri.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.announce(s.record.ID, cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &cri.RunPodSandboxResponse{PodSandboxId: s.record.ID}, nil
}

// makeSandbox builds everything and enters the sandbox. The record is on disk before anything is made, so that nothing made is forgotten.
func (r *Runtime) makeSandbox(ctx context.Context, s *sandbox) error {
	id := s.record.ID
	for _, dir := range []string{r.sandboxDir(id), filepath.Join(r.runDir(id), "ns"), filepath.Join(r.runDir(id), "rootfs")} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	if dir := s.config.GetLogDirectory(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := noteRecord(filepath.Join(r.sandboxDir(id), sandboxFile), &s.record); err != nil {
		return err
	}
	if err := r.makePodFiles(s); err != nil {
		return err
	}
	hello, err := r.launchOf(s).start()
	if err != nil {
		return err
	}
	s.helperPID = hello.PID
	if err := r.connect(ctx, s); err != nil {
		return err
	}
	s.record.Ready, s.record.Created = true, true
	if err := r.save(s); err != nil {
		return err
	}
	r.watch(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes[id] = s
	return nil
}

func (r *Runtime) save(s *sandbox) error {
	r.mu.Lock()
	record := s.record
	r.mu.Unlock()
	return writeRecord(filepath.Join(r.sandboxDir(record.ID), sandboxFile), &record)
}

// connect gives the pod its addresses.
func (r *Runtime) connect(ctx context.Context, s *sandbox) error {
	if s.namespaces().GetNetwork() == cri.NamespaceMode_NODE || r.config.Network == nil {
		return nil
	}
	addresses, err := r.config.Network.SetUp(ctx, s.record.ID, r.pinPath(s, "net"))
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	for _, address := range addresses {
		s.record.Addresses = append(s.record.Addresses, address.String())
	}
	return nil
}

func (r *Runtime) pinPath(s *sandbox, namespace string) string {
	return filepath.Join(r.runDir(s.record.ID), "ns", namespace)
}

// podNamespaces are the kinds of namespace that a pod may have of its own, with what makes them.
var podNamespaces = map[string]uintptr{"net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "pid": 0}

// owns tells whether the pod has a namespace of its own of that kind. The host name goes with the network, as Kubernetes has it.
func (s *sandbox) owns(kind string) bool {
	options := s.namespaces()
	switch kind {
	case "ipc":
		return options.GetIpc() != cri.NamespaceMode_NODE
	case "pid":
		return options != nil && options.Pid == cri.NamespaceMode_POD // who names no namespaces does not mean the zero of this one
	default:
		return options.GetNetwork() != cri.NamespaceMode_NODE
	}
}

// launchOf describes the helper process of a new sandbox.
func (r *Runtime) launchOf(s *sandbox) *launch {
	l := &launch{
		binary: r.helper,
		log:    filepath.Join(r.sandboxDir(s.record.ID), "helper.log"),
		config: &protocol.PodConfig{
			SandboxID:   s.record.ID,
			Dir:         r.runDir(s.record.ID),
			Hostname:    s.config.GetHostname(),
			Pins:        map[string]string{},
			Sysctls:     s.config.GetLinux().GetSysctls(),
			CgroupProcs: r.machine.procsFiles(r.helperCgroup()),
		},
	}
	for kind, flag := range podNamespaces {
		if s.owns(kind) {
			l.config.Pins[kind] = r.pinPath(s, kind)
			l.clone |= flag
		}
	}
	if !s.owns("net") && r.config.HostNetworkNamespace != "" {
		l.join = append(l.join, r.config.HostNetworkNamespace)
	}
	return l
}

// relaunchOf describes the helper that takes a sandbox over from one that was killed.
func (r *Runtime) relaunchOf(s *sandbox) *launch {
	l := r.launchOf(s)
	l.clone, l.config.Recovering = 0, true
	for kind, path := range l.config.Pins {
		if kind != "pid" {
			l.join = append(l.join, path)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.record.SandboxID != s.record.ID || c.state.Phase == protocol.Exited {
			continue
		}
		l.config.Recover = append(l.config.Recover, protocol.RecoverRequest{
			ID: c.record.ID, RecordDir: r.containerDir(c.record.ID), LogPath: logPath(s.config, c.config),
		})
	}
	return l
}

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
	return unpin(filepath.Join(r.runDir(s.record.ID), "ns"))
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
	if parent := s.config.GetLinux().GetCgroupParent(); strings.HasPrefix(parent, r.config.CgroupParent+"/") {
		r.machine.removeCgroups(parent)
	}
	return os.RemoveAll(r.sandboxDir(s.record.ID))
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

// PodSandboxStatus tells how a pod is.
func (r *Runtime) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	response := &cri.PodSandboxStatusResponse{Status: r.sandboxStatus(s), Timestamp: r.config.Clock.Now().UnixNano()}
	for _, c := range r.containersOf(s.record.ID) {
		response.ContainersStatuses = append(response.ContainersStatuses, r.containerStatus(c))
	}
	return response, nil
}

func (r *Runtime) sandboxStatus(s *sandbox) *cri.PodSandboxStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := &cri.PodSandboxStatus{
		Id:          s.record.ID,
		Metadata:    s.config.Metadata,
		State:       s.state(),
		CreatedAt:   s.record.CreatedAt.UnixNano(),
		Network:     &cri.PodSandboxNetworkStatus{},
		Linux:       &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: s.namespaces()}},
		Labels:      s.config.Labels,
		Annotations: s.config.Annotations,
	}
	for i, address := range s.record.Addresses {
		if i == 0 {
			result.Network.Ip = address
		} else {
			result.Network.AdditionalIps = append(result.Network.AdditionalIps, &cri.PodIP{Ip: address})
		}
	}
	return result
}

// state is the CRI's view. Runtime.mu is held.
func (s *sandbox) state() cri.PodSandboxState {
	if s.record.Ready {
		return cri.PodSandboxState_SANDBOX_READY
	}
	return cri.PodSandboxState_SANDBOX_NOTREADY
}
