package fakecri

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version says that this is the fake.
func (r *Runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status is always ready.
func (r *Runtime) Status(ctx context.Context, _ *cri.StatusRequest) (*cri.StatusResponse, error) {
	if err := r.begin(ctx, "Status", ""); err != nil {
		return nil, err
	}
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

// RunPodSandbox makes a record.
func (r *Runtime) RunPodSandbox(ctx context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	m := req.Config.Metadata
	if err := r.begin(ctx, "RunPodSandbox", m.Name); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox{id: r.nextID("s"), config: req.Config, made: r.clock.Now()}
	if req.Config.Linux.GetSecurityContext().GetNamespaceOptions().GetNetwork() != cri.NamespaceMode_NODE {
		s.ip = fmt.Sprintf("10.1.0.%d", r.seq)
	}
	r.sandboxes = append(r.sandboxes, s)
	r.note("run-sandbox %s attempt=%d", m.Name, m.Attempt)
	r.send(s, s.id, cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &cri.RunPodSandboxResponse{PodSandboxId: s.id}, nil
}

func (r *Runtime) findSandbox(id string) *sandbox {
	for _, s := range r.sandboxes {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (r *Runtime) findContainer(id string) *container {
	for _, c := range r.containers {
		if c.status.Id == id {
			return c
		}
	}
	return nil
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %q not found", what, id)
}

// StopPodSandbox ends its containers too. Stopping what isn't there is fine.
func (r *Runtime) StopPodSandbox(ctx context.Context, req *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	if err := r.begin(ctx, "StopPodSandbox", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.findSandbox(req.PodSandboxId); s != nil {
		r.note("stop-sandbox %s", s.config.Metadata.Name)
		r.stopSandbox(s)
	}
	return &cri.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes its containers too.
func (r *Runtime) RemovePodSandbox(_ context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.findSandbox(req.PodSandboxId); s != nil {
		r.note("remove-sandbox %s", s.config.Metadata.Name)
		r.stopSandbox(s)
		r.containers = slices.DeleteFunc(r.containers, func(c *container) bool { return c.sandbox == s })
		r.sandboxes = slices.DeleteFunc(r.sandboxes, func(x *sandbox) bool { return x == s })
	}
	return &cri.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus tells the address.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.findSandbox(req.PodSandboxId)
	if s == nil {
		return nil, notFound("sandbox", req.PodSandboxId)
	}
	return &cri.PodSandboxStatusResponse{Status: s.status()}, nil
}

func (s *sandbox) status() *cri.PodSandboxStatus {
	return &cri.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.made.UnixNano(), Labels: s.config.Labels,
		Annotations: s.config.Annotations, Network: &cri.PodSandboxNetworkStatus{Ip: s.ip},
	}
}

func selected(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// ListPodSandbox knows filters by label.
func (r *Runtime) ListPodSandbox(ctx context.Context, req *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	if err := r.begin(ctx, "ListPodSandbox", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListPodSandboxResponse{}
	for _, s := range r.sandboxes {
		if selected(s.config.Labels, req.GetFilter().GetLabelSelector()) {
			out.Items = append(out.Items, &cri.PodSandbox{Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.made.UnixNano(),
				Labels: s.config.Labels, Annotations: s.config.Annotations})
		}
	}
	return out, nil
}

// CreateContainer makes a record.
func (r *Runtime) CreateContainer(ctx context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	m := req.Config.Metadata
	if err := r.begin(ctx, "CreateContainer", m.Name); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.findSandbox(req.PodSandboxId)
	if s == nil || s.state != cri.PodSandboxState_SANDBOX_READY {
		return nil, notFound("ready sandbox", req.PodSandboxId)
	}
	c := &container{sandbox: s, config: req.Config, killed: make(chan struct{}), status: &cri.ContainerStatus{
		Id: r.nextID("c"), Metadata: m, State: cri.ContainerState_CONTAINER_CREATED, CreatedAt: r.clock.Now().UnixNano(),
		Image: &cri.ImageSpec{Image: req.Config.Image.UserSpecifiedImage}, ImageRef: req.Config.Image.Image, Labels: req.Config.Labels,
		Annotations: req.Config.Annotations, LogPath: s.config.LogDirectory + "/" + req.Config.LogPath, StopSignal: req.Config.StopSignal,
		Resources: &cri.ContainerResources{Linux: req.Config.Linux.GetResources()},
	}}
	r.containers = append(r.containers, c)
	r.send(s, c.status.Id, cri.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &cri.CreateContainerResponse{ContainerId: c.status.Id}, nil
}

// StartContainer lets it run until something ends it.
func (r *Runtime) StartContainer(ctx context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.mu.Lock()
	c := r.findContainer(req.ContainerId)
	r.mu.Unlock()
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	if err := r.begin(ctx, "StartContainer", c.config.Metadata.Name); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.status.State, c.status.StartedAt = cri.ContainerState_CONTAINER_RUNNING, r.clock.Now().UnixNano()
	r.note("start %s/%s attempt=%d", c.sandbox.config.Metadata.Name, c.config.Metadata.Name, c.config.Metadata.Attempt)
	r.send(c.sandbox, c.status.Id, cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &cri.StartContainerResponse{}, nil
}

// StopContainer ends it with 143, or with 137 after the timeout when it ignores TERM.
func (r *Runtime) StopContainer(ctx context.Context, req *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.mu.Lock()
	c := r.findContainer(req.ContainerId)
	if c == nil {
		r.mu.Unlock()
		return &cri.StopContainerResponse{}, nil
	}
	name := c.config.Metadata.Name
	r.note("stop %s/%s timeout=%ds", c.sandbox.config.Metadata.Name, name, req.Timeout)
	ignores := r.ignoreTerm[name]
	r.mu.Unlock()
	if err := r.begin(ctx, "StopContainer", name); err != nil {
		return nil, err
	}
	code := int32(143)
	if ignores {
		timer := r.clock.NewTimer(time.Duration(req.Timeout) * time.Second)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.killed:
		case <-timer.C():
		}
		code = 137
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(c, code, "")
	return &cri.StopContainerResponse{}, nil
}

// RemoveContainer forgets it.
func (r *Runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.findContainer(req.ContainerId); c != nil {
		r.note("remove %s/%s attempt=%d", c.sandbox.config.Metadata.Name, c.config.Metadata.Name, c.config.Metadata.Attempt)
		r.end(c, 137, "")
		r.containers = slices.DeleteFunc(r.containers, func(x *container) bool { return x == c })
	}
	return &cri.RemoveContainerResponse{}, nil
}

// ListContainers knows filters by label.
func (r *Runtime) ListContainers(_ context.Context, req *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListContainersResponse{}
	for _, c := range r.containers {
		if selected(c.config.Labels, req.GetFilter().GetLabelSelector()) {
			out.Containers = append(out.Containers, &cri.Container{Id: c.status.Id, PodSandboxId: c.sandbox.id, Metadata: c.config.Metadata,
				State: c.status.State, CreatedAt: c.status.CreatedAt, Labels: c.config.Labels, Annotations: c.config.Annotations})
		}
	}
	return out, nil
}

// ContainerStatus is a copy.
func (r *Runtime) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.findContainer(req.ContainerId)
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	return &cri.ContainerStatusResponse{Status: proto.Clone(c.status).(*cri.ContainerStatus)}, nil
}

// UpdateContainerResources takes over what it is given.
func (r *Runtime) UpdateContainerResources(ctx context.Context, req *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	if err := r.begin(ctx, "UpdateContainerResources", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.findContainer(req.ContainerId)
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	l := req.Linux
	r.note("update %s/%s shares=%d quota=%d memory=%d", c.sandbox.config.Metadata.Name, c.config.Metadata.Name, l.CpuShares, l.CpuQuota, l.MemoryLimitInBytes)
	c.status.Resources = &cri.ContainerResources{Linux: l}
	return &cri.UpdateContainerResourcesResponse{}, nil
}

// ExecSync asks what OnExec was given; without it every command succeeds.
func (r *Runtime) ExecSync(ctx context.Context, req *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	r.mu.Lock()
	c, f := r.findContainer(req.ContainerId), r.exec
	running := c != nil && c.status.State == cri.ContainerState_CONTAINER_RUNNING
	r.mu.Unlock()
	if !running {
		return nil, notFound("running container", req.ContainerId)
	}
	if f == nil {
		return &cri.ExecSyncResponse{}, nil
	}
	out, code, err := f(ctx, c.config.Metadata.Name, req.Cmd)
	if err != nil {
		return nil, err
	}
	return &cri.ExecSyncResponse{Stdout: []byte(out), ExitCode: code}, nil
}
