package fakecri

import (
	"context"
	"fmt"
	"os"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// UseMemory sets what each container of the pod is said to use, in bytes.
func (r *Runtime) UseMemory(pod string, bytes uint64) { r.set(r.memory, pod, bytes) }

// UseDisk sets what is said to be in the writable layer of each container of the pod, in bytes.
func (r *Runtime) UseDisk(pod string, bytes uint64) { r.set(r.written, pod, bytes) }

// UseProcesses sets how many processes the pod is said to have.
func (r *Runtime) UseProcesses(pod string, n uint64) { r.set(r.processes, pod, n) }

func (r *Runtime) set(what map[string]uint64, pod string, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what[pod] = n
}

// ListPodSandboxStats tells the processes that UseProcesses set.
func (r *Runtime) ListPodSandboxStats(context.Context, *cri.ListPodSandboxStatsRequest) (*cri.ListPodSandboxStatsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListPodSandboxStatsResponse{}
	for _, s := range r.sandboxes {
		out.Stats = append(out.Stats, &cri.PodSandboxStats{
			Attributes: &cri.PodSandboxAttributes{Metadata: s.config.Metadata},
			Linux:      &cri.LinuxPodSandboxStats{Process: &cri.ProcessUsage{ProcessCount: &cri.UInt64Value{Value: r.processes[s.config.Metadata.Name]}}},
		})
	}
	return out, nil
}

// ListContainerStats tells the memory and disk space that UseMemory and UseDisk set, for running containers.
func (r *Runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListContainerStatsResponse{}
	for _, c := range r.containers {
		if c.status.State == cri.ContainerState_CONTAINER_RUNNING {
			out.Stats = append(out.Stats, &cri.ContainerStats{
				Attributes:    &cri.ContainerAttributes{Id: c.status.Id, Metadata: c.config.Metadata, Labels: c.config.Labels},
				Memory:        &cri.MemoryUsage{WorkingSetBytes: &cri.UInt64Value{Value: r.memory[c.sandbox.config.Metadata.Name]}},
				WritableLayer: &cri.FilesystemUsage{UsedBytes: &cri.UInt64Value{Value: r.written[c.sandbox.config.Metadata.Name]}},
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
