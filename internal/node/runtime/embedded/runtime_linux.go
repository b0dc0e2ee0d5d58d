package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/bayplan/bayplan/internal/node/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

var _ runtime.Service = (*Runtime)(nil)

// Runtime is the embedded container runtime.
type Runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer

	config  Config
	machine *machine
	helper  *os.File // the helper's binary
	boot    string
	events  broadcaster
	streams *streamServer

	// ctx ends with Close; work that no call waits for belongs to it.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	// mu guards the maps and what is in them.
	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	names      map[string]string // names of sandboxes and containers in use, to their ids
}

// New opens a runtime and takes over what a former one left: running pods go on untouched, and what ended meanwhile is known.
func New(ctx context.Context, config Config) (*Runtime, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("the container runtime needs root: run as root, or use simulated nodes (--sim-nodes)")
	}
	r := &Runtime{
		config:     config,
		boot:       bootID(),
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		names:      map[string]string{},
	}
	for _, dir := range []string{r.sandboxesDir(), r.containersDir(), config.RunDir} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, fmt.Errorf("container runtime: %w", err)
		}
	}
	var err error
	if r.helper, err = helperBinary(config.Helper); err != nil {
		return nil, err
	}
	if r.machine, err = probe(); err != nil {
		return nil, err
	}
	if err := r.machine.makeHelperCgroup(r.helperCgroup()); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.FromContext(ctx)))
	if r.streams, err = r.startStreaming(); err != nil {
		return nil, err
	}
	if err := r.adopt(ctx); err != nil {
		_ = r.Close(ctx)
		return nil, err
	}
	return r, nil
}

// Close lets go of the pods, which go on running. If none runs, nothing of the runtime is left but its directory Root.
func (r *Runtime) Close(context.Context) error {
	r.cancel()
	r.events.close()
	_ = r.streams.http.Close()
	r.work.Wait()
	_ = r.helper.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.record.Ready {
			return nil
		}
	}
	r.machine.removeCgroups(r.config.CgroupParent)
	_ = os.Remove(r.config.RunDir)
	return nil
}

func (r *Runtime) sandboxesDir() string          { return filepath.Join(r.config.Root, "sandboxes") }
func (r *Runtime) containersDir() string         { return filepath.Join(r.config.Root, "containers") }
func (r *Runtime) sandboxDir(id string) string   { return filepath.Join(r.sandboxesDir(), id) }
func (r *Runtime) containerDir(id string) string { return filepath.Join(r.containersDir(), id) }
func (r *Runtime) runDir(sandboxID string) string {
	return filepath.Join(r.config.RunDir, sandboxID)
}

// helperCgroup is where all helpers of the node are: apart from the agent, so that they outlive it, and apart from the pods, so that
// their memory is not charged to a pod's limit.
func (r *Runtime) helperCgroup() string { return filepath.Join(r.config.CgroupParent, "helpers") }

// newID makes an id as container runtimes do.
func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Version answers who this is.
func (r *Runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: Name, RuntimeVersion: Version, RuntimeApiVersion: "v1"}, nil
}

// Status tells that the runtime is ready, and what it can do.
func (r *Runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{
		Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
			{Type: cri.RuntimeReady, Status: true},
			{Type: cri.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*cri.RuntimeHandler{{Features: &cri.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}}},
		Features:        &cri.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// RuntimeConfig tells how cgroups are made: by writing to the file system, as systemd does not own them here.
func (r *Runtime) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig takes the node's pod CIDR, which the network knows already.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

// reserve takes a name for an id. Who creates twice what should exist once has lost count, and is told.
func (r *Runtime) reserve(name, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, taken := r.names[name]; taken {
		return status.Errorf(codes.AlreadyExists, "%s exists already, as %s", name, other)
	}
	r.names[name] = id
	return nil
}

// release frees a name. r.mu is held.
func (r *Runtime) release(name, id string) {
	if r.names[name] == id {
		delete(r.names, name)
	}
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, err := expand(r.sandboxes, id)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "pod sandbox %q: %v", id, err)
	}
	return r.sandboxes[full], nil
}

func (r *Runtime) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, err := expand(r.containers, id)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "container %q: %v", id, err)
	}
	return r.containers[full], nil
}

// expand gives the id that begins with prefix: people who debug a node type the first digits.
func expand[T any](all map[string]T, prefix string) (string, error) {
	if _, ok := all[prefix]; ok {
		return prefix, nil
	}
	found := ""
	for id := range all {
		if prefix == "" || len(id) < len(prefix) || id[:len(prefix)] != prefix {
			continue
		}
		if found != "" {
			return "", errors.New("several ids begin so")
		}
		found = id
	}
	if found == "" {
		return "", errors.New("not found")
	}
	return found, nil
}
