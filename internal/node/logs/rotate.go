package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// Rotator moves logs that have grown large aside, so that no container fills the disk with its output. All fields have to be set.
type Rotator struct {
	// MaxSize is the size in bytes above which a log is rotated; 0 turns rotation off.
	MaxSize int64
	// MaxFiles is how many files a container has, the current one included.
	MaxFiles int
	Runtime  interface {
		ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error)
		ContainerStatus(context.Context, *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error)
		ReopenContainerLog(context.Context, *cri.ReopenContainerLogRequest) (*cri.ReopenContainerLogResponse, error)
	}
	Clock clock.PassiveClock
}

// stampSuffix is what a rotated log's name ends with: sorted by name is sorted by age.
const stampSuffix = "20060102-150405"

// Rotate looks at the logs of all running containers below root, the agent's directory. It asks the runtime only for those that have a
// large file there.
func (r *Rotator) Rotate(ctx context.Context, root string) error {
	if r.MaxSize <= 0 {
		return nil
	}
	large, err := r.large(filepath.Join(root, "logs"))
	if err != nil || len(large) == 0 {
		return err
	}
	running := &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}
	list, err := r.Runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{State: running}})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	var failed error
	for _, c := range list.Containers {
		resp, err := r.Runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.Id})
		if err != nil || !large[resp.Status.LogPath] {
			continue // gone in between, or small
		}
		if err := r.rotate(ctx, c.Id, resp.Status.LogPath); err != nil {
			failed = errors.Join(failed, fmt.Errorf("log of container %s: %w", c.Id, err))
		}
	}
	return failed
}

// large are the current logs that are larger than they should be.
func (r *Rotator) large(dir string) (map[string]bool, error) {
	found := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.log"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Size() > r.MaxSize {
			found[path] = true
		}
	}
	return found, nil
}

// rotate moves the log aside and lets the runtime begin a new one. If it can't, the log is moved back, so that nothing is lost.
func (r *Rotator) rotate(ctx context.Context, id, path string) error {
	old, err := filepath.Glob(path + ".*")
	if err != nil {
		return err
	}
	slices.Sort(old)
	for len(old) > max(0, r.MaxFiles-2) {
		if err := os.Remove(old[0]); err != nil {
			return err
		}
		old = old[1:]
	}
	aside := path + "." + r.Clock.Now().UTC().Format(stampSuffix)
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	if _, err := r.Runtime.ReopenContainerLog(ctx, &cri.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		return errors.Join(err, os.Rename(aside, path))
	}
	return nil
}
