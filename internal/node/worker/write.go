package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"
)

const writeFailed = "Cannot write the pod's status; trying again"

// writer writes a pod's status to the API: one patch at a time, and always the newest status.
type writer struct {
	busy bool
	// api is the newest pod that the API answered to a patch; the informer's may be older.
	api *v1.Pod
	// sent is the status of the last patch that the API took. An API that leaves something out of it is not told the same again.
	sent *v1.PodStatus
	// retry is when to write again after a failure.
	retry time.Time
	// settled is true when the API has what was last computed.
	settled bool
}

// write sends the computed status off if the API doesn't have it. It returns when to try again after a failure.
func (w *Worker) write(ctx context.Context, pod *v1.Pod) time.Time {
	wr := &w.writer
	now := w.deps.Clock.Now()
	if wr.busy || now.Before(wr.retry) {
		wr.settled = false
		return wr.retry
	}
	object := w.shown(pod)
	if object == nil {
		wr.settled = false
		return time.Time{}
	}
	known := newest(object, wr.api)
	patch, err := statusPatch(known, w.computed)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot make a patch of the pod's status")
		return time.Time{}
	}
	unchanged := wr.api != nil && known.UID == wr.api.UID && known.ResourceVersion == wr.api.ResourceVersion
	wr.settled = patch == nil || unchanged && equality.Semantic.DeepEqual(wr.sent, w.computed)
	if wr.settled {
		return time.Time{}
	}
	wr.busy = true
	status := w.computed
	w.ops.Go(func() {
		written, err := w.deps.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		w.report(func(ctx context.Context) { w.written(ctx, written, status, err) })
	})
	return time.Time{}
}

func (w *Worker) written(ctx context.Context, pod *v1.Pod, status *v1.PodStatus, err error) {
	wr := &w.writer
	wr.busy = false
	switch {
	case err == nil:
		wr.api, wr.sent, wr.retry = pod, status, time.Time{}
		w.failures.Over(writeFailed)
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// The pod is gone, or another one has its name now: the informer will say so.
		wr.retry = w.deps.Clock.Now().Add(time.Second)
	default:
		w.failures.Error(ctx, err, writeFailed)
		wr.retry = w.deps.Clock.Now().Add(time.Second)
	}
}

// newest returns the younger of two states of a pod; without comparable versions, the one that the informer has.
func newest(informer, answer *v1.Pod) *v1.Pod {
	if answer == nil || answer.UID != informer.UID {
		return informer
	}
	order, err := resourceversion.CompareResourceVersion(informer.ResourceVersion, answer.ResourceVersion)
	if err == nil && order < 0 || err != nil && informer.ResourceVersion == "" {
		return answer
	}
	return informer
}

// statusPatch is the patch that takes the pod's status to the wanted one, nil when it is there. The UID in it makes the API refuse the
// patch for another pod of the same name.
func statusPatch(pod *v1.Pod, want *v1.PodStatus) ([]byte, error) {
	old, err := json.Marshal(v1.Pod{Status: pod.Status})
	if err != nil {
		return nil, err
	}
	next, err := json.Marshal(v1.Pod{Status: keepForward(&pod.Status, want)})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, next, v1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("patch of the status: %w", err)
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	fields["metadata"] = map[string]any{"uid": pod.UID}
	return json.Marshal(fields)
}

// keepForward makes sure that a status never goes back: a finished pod stays finished, and restarts are never uncounted.
func keepForward(have, want *v1.PodStatus) v1.PodStatus {
	out := *want.DeepCopy()
	if have.Phase == v1.PodSucceeded || have.Phase == v1.PodFailed {
		out.Phase = have.Phase
	}
	for _, pair := range [][2][]v1.ContainerStatus{
		{have.InitContainerStatuses, out.InitContainerStatuses}, {have.ContainerStatuses, out.ContainerStatuses},
	} {
		for i := range pair[1] {
			for j := range pair[0] {
				if pair[0][j].Name == pair[1][i].Name {
					pair[1][i].RestartCount = max(pair[1][i].RestartCount, pair[0][j].RestartCount)
				}
			}
		}
	}
	return out
}
