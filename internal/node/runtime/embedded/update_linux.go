package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// UpdateContainerResources changes a container's limits, in its cgroup if it runs, and in its record in any case.
func (r *Runtime) UpdateContainerResources(ctx context.Context, request *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	c, err := r.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	s, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return nil, err
	}
	c.op.Lock()
	defer c.op.Unlock()
	given := request.GetLinux()
	if given == nil {
		return &cri.UpdateContainerResourcesResponse{}, nil
	}
	if r.isRunning(c) {
		resources := r.machine.resources(given)
		resources.Devices = nil
		encoded, err := json.Marshal(resources)
		if err != nil {
			return nil, err
		}
		call := &protocol.Request{Update: &protocol.UpdateRequest{ID: c.record.ID, Resources: encoded}}
		if err := r.callHelper(ctx, s, c, call); err != nil {
			return nil, fmt.Errorf("update container %q: %w", c.config.Metadata.Name, err)
		}
	}
	if err := r.recordResources(c, given); err != nil {
		return nil, fmt.Errorf("update container %q: %w", c.config.Metadata.Name, err)
	}
	return &cri.UpdateContainerResourcesResponse{}, nil
}

// recordResources writes the container's new limits down. c.op is held.
func (r *Runtime) recordResources(c *container, given *cri.LinuxContainerResources) error {
	config := proto.CloneOf(c.config)
	if config.Linux == nil {
		config.Linux = &cri.LinuxContainerConfig{}
	}
	config.Linux.Resources = mergeResources(config.Linux.Resources, given)
	encoded, err := encodeContainerConfig(config)
	if err != nil {
		return err
	}
	record := c.record
	record.Config = encoded
	if err := writeRecord(filepath.Join(r.containerDir(c.record.ID), containerFile), &record); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.record, c.config = record, config
	return nil
}

// mergeResources lays what is given over what is. Zero is "not given".
func mergeResources(old, given *cri.LinuxContainerResources) *cri.LinuxContainerResources {
	merged := &cri.LinuxContainerResources{}
	if old != nil {
		merged = proto.CloneOf(old)
	}
	unified := merged.Unified
	merged.HugepageLimits = append(given.HugepageLimits, merged.HugepageLimits...)[:max(len(given.HugepageLimits), len(merged.HugepageLimits))]
	added := proto.CloneOf(given)
	added.HugepageLimits, added.Unified = nil, nil
	proto.Merge(merged, added) // scalars that are not zero replace
	if len(given.Unified) > 0 {
		merged.Unified = map[string]string{}
		for _, settings := range []map[string]string{unified, given.Unified} {
			for name, value := range settings {
				merged.Unified[name] = value
			}
		}
	}
	return merged
}

// ReopenContainerLog makes the container's output go to a new file of the log's name, after the old one was moved away.
func (r *Runtime) ReopenContainerLog(ctx context.Context, request *cri.ReopenContainerLogRequest) (*cri.ReopenContainerLogResponse, error) {
	c, err := r.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	s, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return nil, err
	}
	if !r.isRunning(c) {
		return nil, status.Errorf(codes.FailedPrecondition, "container %q is not running", c.config.Metadata.Name)
	}
	if err := r.callHelper(ctx, s, c, &protocol.Request{Reopen: &protocol.ReopenRequest{ID: c.record.ID}}); err != nil {
		return nil, fmt.Errorf("reopen the log of container %s: %w", c.record.ID, err)
	}
	return &cri.ReopenContainerLogResponse{}, nil
}

func resizeTerminal(terminal *os.File, to size) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: to.height, Col: to.width})
	})
}
