package job

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// mostUncounted bounds status.uncountedTerminatedPods, and with it the size of the Job.
const mostUncounted = 500

func hasFinalizer(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// track does the accounting: it moves UIDs whose pods have lost the finalizer into the counters, adds the UIDs of newly finished pods, writes the
// status, and only then frees the pods that the written status accounts for.
func (a *attempt) track(ctx context.Context) error {
	s := &a.job.Status
	uncounted := a.countFreed()
	free := a.addFinished(uncounted)
	s.UncountedTerminatedPods = uncounted
	s.Active, s.Ready, s.Terminating = int32(len(a.active)), ptr.To(int32(a.ready)), ptr.To(int32(a.terminating))
	if isIndexed(a.job) {
		s.CompletedIndexes, s.Succeeded = a.completed.String(), int32(a.completed.count())
		if a.perIndexLimit() != nil {
			s.FailedIndexes = ptr.To(a.failedIndexes.String())
		}
	}
	a.conclude()
	if !equality.Semantic.DeepEqual(a.job.Status, a.cached.Status) {
		written, err := a.c.client.BatchV1().Jobs(a.job.Namespace).UpdateStatus(ctx, a.job, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		a.c.fresh.Wrote(written)
		a.measure()
	}
	return a.c.freeAll(ctx, free)
}

// countFreed moves UIDs into the counters.
func (a *attempt) countFreed() *batchv1.UncountedTerminatedPods {
	held := sets.New[types.UID]()
	for _, pod := range a.pods {
		if hasFinalizer(pod) {
			held.Insert(pod.UID)
		}
	}
	out := &batchv1.UncountedTerminatedPods{}
	if u := a.cached.Status.UncountedTerminatedPods; u != nil {
		for _, uid := range u.Succeeded {
			if held.Has(uid) {
				out.Succeeded = append(out.Succeeded, uid)
			} else {
				a.job.Status.Succeeded++
			}
		}
		for _, uid := range u.Failed {
			if held.Has(uid) {
				out.Failed = append(out.Failed, uid)
			} else {
				a.job.Status.Failed++
			}
		}
	}
	return out
}

// addFinished adds the UIDs of newly finished pods and returns the pods that can be freed once the status is written.
func (a *attempt) addFinished(uncounted *batchv1.UncountedTerminatedPods) (free []*corev1.Pod) {
	for _, pod := range a.pods {
		if hasFinalizer(pod) && (a.uncounted.succeeded.Has(pod.UID) || a.uncounted.failed.Has(pod.UID)) {
			free = append(free, pod)
		}
		if isSuspended(a.job) && pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded {
			free = append(free, pod)
		}
	}
	room := func() bool { return len(uncounted.Succeeded)+len(uncounted.Failed) < mostUncounted }
	for _, pod := range a.newSucceeded {
		if !isIndexed(a.job) {
			if !room() {
				break
			}
			uncounted.Succeeded = append(uncounted.Succeeded, pod.UID)
		}
		free = append(free, pod)
	}
	for _, pod := range a.newFailed {
		if a.remembersFailures(pod) {
			continue
		}
		if !a.ignored.Has(pod.UID) {
			if !room() {
				break
			}
			uncounted.Failed = append(uncounted.Failed, pod.UID)
		}
		free = append(free, pod)
	}
	return free
}

// remembersFailures tells whether a failed pod is the only one that knows how often its index failed. It is kept until the next pod of
// the index carries that number on.
func (a *attempt) remembersFailures(pod *corev1.Pod) bool {
	i := indexOf(pod, completionsOf(a.job))
	if a.perIndexLimit() == nil || a.verdict != nil || i < 0 || a.completed.has(i) || a.failedIndexes.has(i) {
		return false
	}
	for _, other := range a.pods {
		if other != pod && indexOf(other, completionsOf(a.job)) == i && other.CreationTimestamp.After(pod.CreationTimestamp.Time) {
			return false
		}
	}
	return true
}

// freeAll removes the finalizer from pods.
func (c *Controller) freeAll(ctx context.Context, pods []*corev1.Pod) error {
	errs := make([]error, len(pods))
	var calls sync.WaitGroup
	for i, pod := range pods {
		calls.Go(func() { errs[i] = c.removeFinalizer(ctx, pod) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

func (c *Controller) removeFinalizer(ctx context.Context, pod *corev1.Pod) error {
	if !hasFinalizer(pod) || c.fresh.Stale(pod) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":                                 pod.UID,
		"$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer},
	}})
	if err != nil {
		return err
	}
	freed, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	c.fresh.Wrote(freed)
	return nil
}
