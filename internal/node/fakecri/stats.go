package fakecri

import (
	"context"
	"fmt"
	"os"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListContainerStats tells the memory that UseMemory set, for running containers.
func (r *Runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListContainerStatsResponse{}
	for _, c := range r.containers {
		if c.status.State == cri.ContainerState_CONTAINER_RUNNING {
			out.Stats = append(out.Stats, &cri.ContainerStats{
				Attributes: &cri.ContainerAttributes{Id: c.status.Id, Metadata: c.config.Metadata, Labels: c.config.Labels},
				Memory:     &cri.MemoryUsage{WorkingSetBytes: &cri.UInt64Value{Value: r.memory[c.sandbox.config.Metadata.Name]}},
			})
		}
	}
	return out, nil
}

// ReopenContainerLog makes an empty file where the log was.
func (r *Runtime) ReopenContainerLog(ctx context.Context, req *cri.ReopenContainerLogRequest) (*cri.ReopenContainerLogResponse, error) {
	if err := r.begin(ctx, "ReopenContainerLog", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.findContainer(req.ContainerId)
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	if err := os.WriteFile(c.status.LogPath, nil, 0o644); err != nil {
		return nil, fmt.Errorf("log of container %s: %w", req.ContainerId, err)
	}
	return &cri.ReopenContainerLogResponse{}, nil
}
