package worker

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// Cgroups makes the cgroups of pods, in which the runtime makes those of their containers.
type Cgroups interface {
	// EnsurePod makes the cgroup of that path, or brings the one that is there to these values.
	EnsurePod(ctx context.Context, parent string, r *cri.LinuxContainerResources) error
	// RemovePod removes the cgroup of a pod, whatever its class. That there is none is no error, that a process is in it is one.
	RemovePod(ctx context.Context, uid string) error
}

// ensureCgroup makes the pod's cgroup before the sandbox, or gives it what was granted to the pod by now.
func (w *Worker) ensureCgroup(ctx context.Context, pod *v1.Pod) error {
	if w.deps.Cgroups == nil {
		return nil
	}
	granted := w.podLimits()
	if err := w.deps.Cgroups.EnsurePod(ctx, translate.CgroupParent(w.deps.Node().CgroupRoot, pod), granted); err != nil {
		w.event(pod, "", v1.EventTypeWarning, "FailedCreatePodContainer", fmt.Sprintf("unable to ensure pod container exists: %v", err))
		return fmt.Errorf("cgroup of the pod: %w", err)
	}
	w.limits.Store(granted)
	return nil
}

// renewCgroup is ensureCgroup where the cgroup is there: what was granted since is all that there may be to do.
func (w *Worker) renewCgroup(ctx context.Context, pod *v1.Pod) error {
	if last := w.limits.Load(); last != nil && proto.Equal(last, w.podLimits()) {
		return nil
	}
	return w.ensureCgroup(ctx, pod)
}

// removeCgroup removes the pod's cgroup when nothing of the pod is left in the runtime.
func (w *Worker) removeCgroup(ctx context.Context) error {
	if w.deps.Cgroups == nil {
		return nil
	}
	return w.deps.Cgroups.RemovePod(ctx, string(w.uid))
}

// podLimits are those of the pod's cgroup.
func (w *Worker) podLimits() *cri.LinuxContainerResources {
	r := translate.PodResources(w.Granted())
	if n := w.deps.Node().PodPIDs; n > 0 {
		r.Unified = map[string]string{"pids.max": strconv.FormatInt(n, 10)}
	}
	return r
}
