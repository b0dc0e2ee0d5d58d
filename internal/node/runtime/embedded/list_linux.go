package embedded

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containersOf gives the containers of a sandbox, the oldest first.
func (r *Runtime) containersOf(sandboxID string) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*container
	for _, c := range r.containers {
		if c.record.SandboxID == sandboxID {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *container) int {
		return cmp.Or(a.record.CreatedAt.Compare(b.record.CreatedAt), cmp.Compare(a.record.ID, b.record.ID))
	})
	return found
}

// ListPodSandbox lists the sandboxes that the filter lets through, the newest first.
func (r *Runtime) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := &cri.ListPodSandboxResponse{}
	filter := request.GetFilter()
	for id, s := range r.sandboxes {
		if !strings.HasPrefix(id, filter.GetId()) || !matches(filter.GetLabelSelector(), s.config.Labels) {
			continue
		}
		if filter.GetState() != nil && filter.State.State != s.state() {
			continue
		}
		response.Items = append(response.Items, &cri.PodSandbox{
			Id: id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.record.CreatedAt.UnixNano(),
			Labels: s.config.Labels, Annotations: s.config.Annotations,
		})
	}
	slices.SortFunc(response.Items, func(a, b *cri.PodSandbox) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.Id, b.Id))
	})
	return response, nil
}

// ListContainers lists the containers that the filter lets through, the newest first.
func (r *Runtime) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := &cri.ListContainersResponse{}
	filter := request.GetFilter()
	for id, c := range r.containers {
		if !strings.HasPrefix(id, filter.GetId()) || !strings.HasPrefix(c.record.SandboxID, filter.GetPodSandboxId()) ||
			!matches(filter.GetLabelSelector(), c.config.Labels) {
			continue
		}
		if filter.GetState() != nil && filter.State.State != c.criState() {
			continue
		}
		response.Containers = append(response.Containers, &cri.Container{
			Id: id, PodSandboxId: c.record.SandboxID, Metadata: c.config.Metadata, Image: c.config.Image, ImageRef: c.record.ImageRef,
			ImageId: c.record.ImageID, State: c.criState(), CreatedAt: c.record.CreatedAt.UnixNano(),
			Labels: c.config.Labels, Annotations: c.config.Annotations,
		})
	}
	slices.SortFunc(response.Containers, func(a, b *cri.Container) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.Id, b.Id))
	})
	return response, nil
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// criState is the CRI's view. Runtime.mu is held.
func (c *container) criState() cri.ContainerState {
	switch c.state.Phase {
	case protocol.Running:
		return cri.ContainerState_CONTAINER_RUNNING
	case protocol.Exited:
		return cri.ContainerState_CONTAINER_EXITED
	default:
		return cri.ContainerState_CONTAINER_CREATED
	}
}

// ContainerStatus tells how a container is.
func (r *Runtime) ContainerStatus(_ context.Context, request *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	c, err := r.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatusResponse{Status: r.containerStatus(c)}, nil
}

func (r *Runtime) containerStatus(c *container) *cri.ContainerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := &cri.ContainerStatus{
		Id:          c.record.ID,
		Metadata:    c.config.Metadata,
		State:       c.criState(),
		CreatedAt:   c.record.CreatedAt.UnixNano(),
		Image:       c.config.Image,
		ImageRef:    c.record.ImageRef,
		ImageId:     c.record.ImageID,
		Labels:      c.config.Labels,
		Annotations: c.config.Annotations,
		Mounts:      c.config.Mounts,
		Resources:   &cri.ContainerResources{Linux: c.config.GetLinux().GetResources()},
		StopSignal:  c.config.GetStopSignal(),
	}
	if s := r.sandboxes[c.record.SandboxID]; s != nil {
		result.LogPath = logPath(s.config, c.config)
	}
	if c.user != nil {
		result.User = &cri.ContainerUser{Linux: c.user}
	}
	if !c.state.StartedAt.IsZero() {
		result.StartedAt = c.state.StartedAt.UnixNano()
	}
	if c.state.Phase == protocol.Exited {
		result.FinishedAt = c.state.FinishedAt.UnixNano()
		result.ExitCode = int32(c.state.ExitCode)
		result.Reason, result.Message = c.reason(), c.state.Message
	}
	return result
}

// reason is the word for how a container ended that users know from their pods' statuses.
func (c *container) reason() string {
	switch {
	case c.record.StartError != "":
		return "StartError"
	case c.state.OOMKilled:
		return "OOMKilled"
	case c.state.ExitCode == 0:
		return "Completed"
	default:
		return "Error"
	}
}
