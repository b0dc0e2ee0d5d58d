package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// attempt is one sync of one Job: what the caches show and what the sync makes of it.
type attempt struct {
	c       *Controller
	key     string
	cached  *batchv1.Job
	job     *batchv1.Job // a copy whose status is changed and then written
	now     time.Time
	settled bool // the cache shows all of our own writes

	pods                            []*corev1.Pod
	active, newSucceeded, newFailed []*corev1.Pod
	terminating, ready              int
	uncounted                       struct{ succeeded, failed sets.Set[types.UID] }
	completed, failedIndexes        indexes
	ignored                         sets.Set[types.UID] // failed, but not counted by the pod failure policy
	verdict                         *verdict
}

func (c *Controller) sync(ctx context.Context, key string) error {
	if strings.HasPrefix(key, strayKey) {
		return c.syncStray(ctx, key)
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	job, err := c.jobs.Jobs(namespace).Get(name)
	if err != nil {
		c.expectations.Forget(key)
		c.forgetBackoff(key)
		return controller.IgnoreNotFound(err)
	}
	if by := job.Spec.ManagedBy; by != nil && *by != managedBy {
		return nil
	}
	if c.fresh.Stale(job) {
		return nil // pods that the status accounts for would be counted twice, or not at all; our own write brings us back
	}
	settled, left := c.expectations.Satisfied(key) // before the pods are read: what settles in between would not be seen
	if !settled {
		c.AddAfter(key, left)
	}
	pods, err := c.claim(ctx, job)
	if err != nil {
		return err
	}
	if isOver(job) || job.DeletionTimestamp != nil {
		return c.freeAll(ctx, pods)
	}
	a := c.newAttempt(key, job, pods)
	a.settled = settled
	return a.run(ctx)
}

func (c *Controller) claim(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("job %s: spec.selector: %w", keyOf(job), err)
	}
	candidates := controller.Owned[*corev1.Pod](c.podIndex, job.UID)
	if !selector.Empty() {
		candidates = append(candidates, controller.Orphans[*corev1.Pod](c.podIndex, job.Namespace)...)
	}
	claimer := controller.Claimer[*corev1.Pod]{
		Owner: job, Kind: gvk, Selector: selector, Finalizers: []string{batchv1.JobTrackingFinalizer}, Patch: c.control.Patch,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		},
	}
	pods, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the pods of Job %s: %w", keyOf(job), err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

func (c *Controller) newAttempt(key string, job *batchv1.Job, pods []*corev1.Pod) *attempt {
	a := &attempt{c: c, key: key, cached: job, job: job.DeepCopy(), now: c.clock.Now(), pods: pods, ignored: sets.New[types.UID]()}
	a.uncounted.succeeded, a.uncounted.failed = sets.New[types.UID](), sets.New[types.UID]()
	if u := job.Status.UncountedTerminatedPods; u != nil {
		a.uncounted.succeeded.Insert(u.Succeeded...)
		a.uncounted.failed.Insert(u.Failed...)
	}
	if isIndexed(job) {
		a.completed = parseIndexes(job.Status.CompletedIndexes, completionsOf(job))
		a.failedIndexes = parseIndexes(ptr.Deref(job.Status.FailedIndexes, ""), completionsOf(job))
	}
	for _, pod := range pods {
		a.sort(pod)
	}
	a.judgePods()
	return a
}

// sort puts a pod where it belongs.
func (a *attempt) sort(pod *corev1.Pod) {
	switch {
	case controller.IsPodActive(pod):
		a.active = append(a.active, pod)
		if controller.IsPodReady(pod) {
			a.ready++
		}
	case controller.IsPodTerminating(pod):
		a.terminating++
	}
	if !hasFinalizer(pod) || a.uncounted.succeeded.Has(pod.UID) || a.uncounted.failed.Has(pod.UID) {
		return
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		a.newSucceeded = append(a.newSucceeded, pod)
	case a.failed(pod):
		a.newFailed = append(a.newFailed, pod)
	}
}

// failed tells whether the pod counts as failed. One that is being deleted does at once, unless the Job only replaces pods when they have
// ended; one that is deleted because the Job is suspended does not.
func (a *attempt) failed(pod *corev1.Pod) bool {
	deleting := pod.DeletionTimestamp != nil
	switch {
	case deleting && isSuspended(a.job):
		return false
	case pod.Status.Phase == corev1.PodFailed:
		return true
	}
	return deleting && pod.Status.Phase != corev1.PodSucceeded && !replacesOnlyFailed(a.job)
}

// replacesOnlyFailed tells whether a pod is replaced only when it has ended, and not already when it is being deleted.
func replacesOnlyFailed(job *batchv1.Job) bool {
	return (job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed) || job.Spec.PodFailurePolicy != nil
}

func isSuspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

// succeeded counts the successes, whether they are in the status already or not.
func (a *attempt) succeeded() int {
	if isIndexed(a.job) {
		return a.completed.count()
	}
	return int(a.cached.Status.Succeeded) + a.uncounted.succeeded.Len() + len(a.newSucceeded)
}

// failures counts the failures, whether they are in the status already or not.
func (a *attempt) failures() int {
	n := int(a.cached.Status.Failed) + a.uncounted.failed.Len()
	for _, pod := range a.newFailed {
		if !a.ignored.Has(pod.UID) {
			n++
		}
	}
	return n
}

func (a *attempt) run(ctx context.Context) error {
	if a.job.Status.StartTime == nil && !isSuspended(a.job) {
		a.job.Status.StartTime = ptr.To(metav1.NewTime(a.now))
	}
	a.c.recordBackoff(a)
	a.decide()
	var manageErr error
	switch {
	case a.verdict != nil && a.settled:
		manageErr = a.removeActive(ctx, a.active)
	case a.verdict == nil && a.settled:
		manageErr = a.manage(ctx)
		a.noteSuspension()
		a.judgeCompletion()
	}
	if err := a.track(ctx); err != nil {
		return err
	}
	if manageErr != nil && controller.IsNamespaceTerminating(manageErr) {
		return nil
	}
	return manageErr
}
