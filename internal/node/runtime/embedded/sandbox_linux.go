package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is a pod sandbox of this runtime. record is guarded by Runtime.mu; op serialises what changes the sandbox as a whole.
type sandbox struct {
	op     sync.Mutex
	record sandboxRecord
	config *cri.PodSandboxConfig // never changed
	socket string
	// helperPID is the helper that was last heard of.
	helperPID int
	// unwatch ends the watch over the helper, and returns when it has ended: then no other helper is about to be started.
	unwatch func()
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
		return nil, errors.Join(err, cleared)
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
	l := r.launchOf(s)
	if err := r.makeNamespaces(s, l); err != nil {
		return err
	}
	hello, err := l.start()
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
	r.watch(s, nil)
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
	l.config.Pinned = s.userNamespace() != nil
	for kind, flag := range podNamespaces {
		if !s.owns(kind) {
			continue
		}
		l.config.Pins[kind] = r.pinPath(s, kind)
		switch {
		case !l.config.Pinned:
			l.clone |= flag
		case kind != "pid":
			l.join = append(l.join, r.pinPath(s, kind))
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
		if kind != "pid" && !slices.Contains(l.join, path) {
			l.join = append(l.join, path)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.record.SandboxID != s.record.ID || c.state.Phase == protocol.Exited {
			continue
		}
		request := protocol.RecoverRequest{ID: c.record.ID, RecordDir: r.containerDir(c.record.ID), LogPath: logPath(s.config, c.config)}
		if c.pidfd != nil {
			l.files = append(l.files, c.pidfd)
			request.Pidfd = 2 + len(l.files)
		}
		l.config.Recover = append(l.config.Recover, request)
	}
	return l
}
