package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// resizeRetry is how often a resize that has to wait for room is tried again.
const resizeRetry = 10 * time.Second

// grant decides on a resize that the spec asks for: what fits is granted, and the containers are then changed. It returns when to decide
// again on one that has to wait.
func (w *Worker) grant(pod *v1.Pod) time.Time {
	if w.memory.Allocated == nil {
		w.memory.Allocated, w.memory.Pending = w.allocatedBefore(pod), pendingBefore(pod)
		w.noteGranted(pod)
	}
	wanted := resources(pod)
	if equality.Semantic.DeepEqual(wanted, w.memory.Allocated) {
		w.memory.Pending = nil
		return time.Time{}
	}
	reason, message, known := w.deps.Room(pod)
	if !known {
		return w.deps.Clock.Now().Add(resizeRetry)
	}
	if reason != "" {
		pending := &v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: reason, Message: message}
		if w.memory.Pending == nil || w.memory.Pending.Reason != reason {
			w.event(pod, "", v1.EventTypeWarning, "Resize"+reason, message)
		}
		w.memory.Pending = pending
		return w.deps.Clock.Now().Add(resizeRetry)
	}
	w.memory.Allocated, w.memory.Pending, w.memory.ResizeError = wanted, nil, ""
	w.noteGranted(pod)
	w.event(pod, "", v1.EventTypeNormal, "ResizeStarted", fmt.Sprintf("Pod resize started for generation %d", pod.Generation))
	return time.Time{}
}

// resources are the resources of all containers that the spec asks for.
func resources(pod *v1.Pod) map[string]v1.ResourceRequirements {
	out := map[string]v1.ResourceRequirements{}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			out[list[i].Name] = list[i].Resources
		}
	}
	return out
}

// allocatedBefore is what was granted before the agent was started, which the status tells. A container that never ran is granted what it
// asks for, as admission has seen to.
func (w *Worker) allocatedBefore(pod *v1.Pod) map[string]v1.ResourceRequirements {
	out := resources(pod)
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			s := &list[i]
			spec, ok := out[s.Name]
			if !ok || s.ContainerID == "" || s.Resources == nil {
				continue
			}
			if s.AllocatedResources != nil {
				spec.Requests = s.AllocatedResources
			}
			spec.Limits = s.Resources.Limits
			out[s.Name] = spec
		}
	}
	return out
}

// pendingBefore is the resize that waited before the agent was started.
func pendingBefore(pod *v1.Pod) *v1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodResizePending {
			return c.DeepCopy()
		}
	}
	return nil
}

// noteGranted keeps the pod with what was granted to it, for those who count what the node gives.
func (w *Worker) noteGranted(pod *v1.Pod) {
	granted := pod.DeepCopy()
	for _, list := range [][]v1.Container{granted.Spec.InitContainers, granted.Spec.Containers} {
		for i := range list {
			list[i].Resources = w.memory.Allocated[list[i].Name]
		}
	}
	w.granted.Store(granted)
}

// Granted is the pod with what the node granted to it, which is less or more than its spec while a resize waits.
func (w *Worker) Granted() *v1.Pod {
	if p := w.granted.Load(); p != nil {
		return p
	}
	return w.Pod()
}

// updateContainer lets the runtime enforce what was granted.
func (w *Worker) updateContainer(ctx context.Context, pod *v1.Pod, a lifecycle.Action, granted v1.ResourceRequirements) error {
	spec := containerSpec(pod, a.Container)
	if spec == nil {
		return errors.New("the pod has no such container")
	}
	r := translate.Resources(pod, spec, granted, w.deps.Node().Capacity.Memory().Value())
	if r.CpuQuota == 0 {
		r.CpuQuota = -1 // a limit that was taken away
	}
	// A parent's limits must hold its children's: the pod grows before its container, and shrinks after it.
	if w.deps.Cgroups != nil {
		parent := translate.CgroupParent(w.deps.Node().CgroupRoot, pod)
		if err := w.deps.Cgroups.EnsurePod(ctx, parent, w.podLimits()); err != nil {
			klog.FromContext(ctx).V(4).Info("The pod can shrink only after its container", "err", err)
		}
	}
	_, err := w.deps.Runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: a.ID, Linux: r})
	if err == nil {
		err = w.ensureCgroup(ctx, pod)
	}
	if err != nil && ctx.Err() == nil {
		w.pause(ctx)
	}
	return err
}

func (w *Worker) updateDone(pod *v1.Pod, a lifecycle.Action, err error) {
	if err != nil {
		w.memory.ResizeError = message(err)
		w.event(pod, a.Container, v1.EventTypeWarning, "ResizeError", w.memory.ResizeError)
		return
	}
	w.memory.ResizeError = ""
}
