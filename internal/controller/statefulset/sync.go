package statefulset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// round is one sync of one set.
type round struct {
	c               *Controller
	key             string
	cached          *appsv1.StatefulSet
	set             *appsv1.StatefulSet // a copy whose status is changed and then written
	now             time.Time
	revisions       []*appsv1.ControllerRevision
	current, update *appsv1.ControllerRevision
	pods            map[int]*corev1.Pod // by ordinal
	next            time.Duration       // when the next ready pod becomes available
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	set, err := c.sets.StatefulSets(namespace).Get(name)
	if err != nil {
		c.removals.Forget(key)
		return controller.IgnoreNotFound(err)
	}
	if settled, left := c.removals.Satisfied(key); !settled {
		c.AddAfter(key, left) // the event of the pod that we removed comes long before
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("statefulSet %s: spec.selector: %w", key, err)
	}
	r := &round{c: c, key: key, cached: set, set: set.DeepCopy(), now: c.clock.Now()}
	if r.set.Status.CollisionCount == nil {
		r.set.Status.CollisionCount = new(int32)
	}
	if err := r.readPods(ctx, selector); err != nil {
		return err
	}
	if err := r.readRevisions(ctx, selector); err != nil {
		return errors.Join(err, r.writeStatus(ctx))
	}
	failure := r.step(ctx)
	r.count()
	if err := r.writeStatus(ctx); err != nil {
		return errors.Join(failure, err)
	}
	if failure != nil {
		if controller.IsNamespaceTerminating(failure) {
			return nil
		}
		return failure
	}
	return r.trim(ctx)
}

func (r *round) fresh(ctx context.Context) (metav1.Object, error) {
	return r.c.client.AppsV1().StatefulSets(r.set.Namespace).Get(ctx, r.set.Name, metav1.GetOptions{})
}

func (r *round) readPods(ctx context.Context, selector labels.Selector) error {
	candidates := controller.Owned[*corev1.Pod](r.c.podIndex, r.set.UID)
	if !selector.Empty() {
		candidates = append(candidates, controller.Orphans[*corev1.Pod](r.c.podIndex, r.set.Namespace)...)
	}
	claimer := controller.Claimer[*corev1.Pod]{
		Owner: r.cached, Kind: gvk, Selector: selector, Fresh: r.fresh,
		Match: func(pod *corev1.Pod) bool { return ordinalOf(r.cached, pod) >= 0 },
		Patch: controller.PodControl{Client: r.c.client, Recorder: r.c.recorder}.Patch,
	}
	pods, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return fmt.Errorf("claim the pods of StatefulSet %s: %w", r.key, err)
	}
	r.pods = map[int]*corev1.Pod{}
	for _, pod := range pods {
		r.pods[ordinalOf(r.cached, pod)] = pod
	}
	return nil
}

// readRevisions finds the revision that is rolled out to and the one that was before.
func (r *round) readRevisions(ctx context.Context, selector labels.Selector) (err error) {
	if r.revisions, err = r.c.revisions.List(ctx, r.cached, selector, r.fresh); err != nil {
		return err
	}
	r.update, err = r.c.revisions.Current(ctx, r.cached, &r.set.Spec.Template, r.revisions, &r.set.Status.CollisionCount,
		func(data []byte, collisions *int32) (string, map[string]string) {
			hash := controller.DataHash(data, collisions)
			labels := maps.Clone(r.set.Spec.Template.Labels)
			labels[controller.RevisionHashLabel] = hash
			return hash, labels
		})
	if err != nil {
		return err
	}
	r.current = r.update
	for _, revision := range r.revisions {
		if revision.Name == r.set.Status.CurrentRevision {
			r.current = revision
		}
	}
	r.set.Status.CurrentRevision, r.set.Status.UpdateRevision = r.current.Name, r.update.Name
	r.set.Status.ObservedGeneration = r.set.Generation
	return nil
}

// ordered tells whether each pod must wait for the one before.
func (r *round) ordered() bool { return r.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement }

// healthy tells whether the pod runs, has been ready for minReadySeconds, and is not being deleted.
func (r *round) healthy(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	left, ready := controller.PodAvailableIn(pod, r.set.Spec.MinReadySeconds, r.now)
	if ready && left > 0 && (r.next == 0 || left < r.next) {
		r.next = left
	}
	return ready && left == 0
}

// step does what can be done now: fill up, scale down, update.
func (r *round) step(ctx context.Context) error {
	if r.set.DeletionTimestamp != nil {
		return nil
	}
	if err := r.syncClaimOwners(ctx); err != nil {
		return err
	}
	if wait, err := r.fill(ctx); wait || err != nil {
		return err
	}
	if wait, err := r.shrink(ctx); wait || err != nil {
		return err
	}
	if r.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	return r.roll(ctx)
}

// fill makes the pods from the lowest ordinal up. It tells whether to wait before anything else is done.
func (r *round) fill(ctx context.Context) (wait bool, err error) {
	var errs []error
	for ordinal := startOf(r.set); ordinal < startOf(r.set)+sizeOf(r.set); ordinal++ {
		done, err := r.fillOne(ctx, ordinal)
		if err != nil {
			errs = append(errs, err)
		}
		if (err != nil || !done) && r.ordered() {
			return true, errors.Join(errs...)
		}
	}
	return false, errors.Join(errs...)
}

// fillOne brings one ordinal to its pod and tells whether it is healthy.
func (r *round) fillOne(ctx context.Context, ordinal int) (bool, error) {
	pod := r.pods[ordinal]
	switch {
	case pod == nil:
		return false, r.createPod(ctx, ordinal)
	case pod.DeletionTimestamp != nil:
		return false, nil
	case controller.IsPodFinished(pod):
		if pod.Status.Phase == corev1.PodFailed {
			r.c.recorder.Eventf(r.cached, corev1.EventTypeWarning, "RecreatingFailedPod", "StatefulSet %s/%s is recreating failed Pod %s", pod.Namespace, r.set.Name, pod.Name)
		} else {
			r.c.recorder.Eventf(r.cached, corev1.EventTypeNormal, "RecreatingTerminatedPod", "StatefulSet %s/%s is recreating terminated Pod %s", pod.Namespace, r.set.Name, pod.Name)
		}
		return false, r.deletePod(ctx, pod)
	}
	if pod.Status.Phase == corev1.PodPending {
		// A claim that somebody deleted would keep the pod waiting for ever.
		if err := r.createClaims(ctx, ordinal); err != nil {
			return false, err
		}
	}
	if !hasIdentity(pod, ordinal) {
		updated := pod.DeepCopy()
		setIdentity(r.set, updated, ordinal)
		updated.Spec = pod.Spec
		if _, err := r.c.client.CoreV1().Pods(pod.Namespace).Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return false, fmt.Errorf("give pod %s/%s its identity: %w", pod.Namespace, pod.Name, err)
		}
	}
	return r.healthy(pod), nil
}

// shrink removes the pods beyond the size, from the highest ordinal down. In order, each must be healthy or the first unhealthy one.
func (r *round) shrink(ctx context.Context) (wait bool, err error) {
	var surplus []int
	for ordinal := range r.pods {
		if ordinal < startOf(r.set) || ordinal >= startOf(r.set)+sizeOf(r.set) {
			surplus = append(surplus, ordinal)
		}
	}
	slices.SortFunc(surplus, func(a, b int) int { return cmp.Compare(b, a) })
	unhealthy := r.firstUnhealthy(surplus)
	var errs []error
	for _, ordinal := range surplus {
		pod := r.pods[ordinal]
		if pod.DeletionTimestamp == nil {
			if r.ordered() && pod != unhealthy && !r.healthy(pod) {
				return true, errors.Join(errs...)
			}
			errs = append(errs, r.deletePod(ctx, pod))
		}
		if r.ordered() {
			return true, errors.Join(errs...)
		}
	}
	return false, errors.Join(errs...)
}

// firstUnhealthy is the unhealthy pod with the lowest ordinal among those that are to go.
func (r *round) firstUnhealthy(highestFirst []int) *corev1.Pod {
	for _, ordinal := range slices.Backward(highestFirst) {
		if pod := r.pods[ordinal]; !r.healthy(pod) {
			return pod
		}
	}
	return nil
}

// trim removes old revisions that no pod uses.
func (r *round) trim(ctx context.Context) error {
	used := map[string]bool{r.current.Name: true, r.update.Name: true}
	for _, pod := range r.pods {
		used[revisionOf(pod)] = true
	}
	limit := r.set.Spec.RevisionHistoryLimit
	if limit == nil {
		limit = ptr.To(int32(10))
	}
	return r.c.revisions.Trim(ctx, r.revisions, limit, func(revision *appsv1.ControllerRevision) bool { return used[revision.Name] })
}
