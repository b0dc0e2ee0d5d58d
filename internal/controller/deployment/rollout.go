package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bayplan/bayplan/internal/controller"
)

// rollout is one sync of one Deployment: the objects as the caches show them, and what the sync makes of them.
type rollout struct {
	c      *Controller
	cached *appsv1.Deployment
	d      *appsv1.Deployment // a copy whose status and revision annotation are changed and then written
	newSet *appsv1.ReplicaSet // of the current template; nil if there is none yet
	old    []*appsv1.ReplicaSet

	replicas, maxSurge, maxUnavailable int32
}

func newRollout(c *Controller, cached *appsv1.Deployment, sets []*appsv1.ReplicaSet) *rollout {
	r := &rollout{c: c, cached: cached, d: cached.DeepCopy(), replicas: 1}
	if cached.Spec.Replicas != nil {
		r.replicas = *cached.Spec.Replicas
	}
	r.maxSurge, r.maxUnavailable = limits(cached, r.replicas)
	slices.SortFunc(sets, olderFirst)
	r.newSet = findNewSet(cached, sets)
	for _, rs := range sets {
		if rs != r.newSet {
			r.old = append(r.old, rs)
		}
	}
	return r
}

func olderFirst(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// limits are maxSurge, rounded up, and maxUnavailable, rounded down, of a rolling update. Both being 0 would mean that nothing can ever move; one
// pod may then be unavailable. Recreate has neither.
func limits(d *appsv1.Deployment, replicas int32) (maxSurge, maxUnavailable int32) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || d.Spec.Strategy.RollingUpdate == nil || replicas == 0 {
		return 0, 0
	}
	rolling := d.Spec.Strategy.RollingUpdate
	surge, err := intstrutil.GetScaledValueFromIntOrPercent(intstrutil.ValueOrDefault(rolling.MaxSurge, intstrutil.FromInt32(0)), int(replicas), true)
	if err != nil {
		surge = 0
	}
	unavailable, err := intstrutil.GetScaledValueFromIntOrPercent(intstrutil.ValueOrDefault(rolling.MaxUnavailable, intstrutil.FromInt32(0)), int(replicas), false)
	if err != nil {
		unavailable = 0
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return int32(surge), min(int32(unavailable), replicas)
}

// all are the ReplicaSets of the Deployment, the new one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.newSet == nil {
		return r.old
	}
	return append(slices.Clone(r.old), r.newSet)
}

// active are those that have or should have pods.
func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, rs := range sets {
		if wanted(rs) > 0 {
			out = append(out, rs)
		}
	}
	return out
}

func wanted(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}

func sumWanted(sets []*appsv1.ReplicaSet) (n int32) {
	for _, rs := range sets {
		n += wanted(rs)
	}
	return n
}

// observed tells whether the status of the set is about its present size. If not, nobody can tell how many pods it has.
func observed(rs *appsv1.ReplicaSet) bool { return rs.Status.ObservedGeneration >= rs.Generation }

// available is how many available pods the set surely has and keeps. Its status may still count pods that are to go; those that are
// not available go first.
func available(rs *appsv1.ReplicaSet) int32 {
	if !observed(rs) {
		return 0
	}
	return min(rs.Status.AvailableReplicas, wanted(rs))
}

// occupied is how many pods the set has or will have, those included that are still to be removed; false if that is not known.
func occupied(sets []*appsv1.ReplicaSet) (n int32, known bool) {
	for _, rs := range sets {
		if !observed(rs) {
			return 0, false
		}
		n += max(wanted(rs), rs.Status.Replicas)
	}
	return n, true
}

// scale sets the size of a ReplicaSet and the annotations that tell from which Deployment size it comes. It replaces the set in the
// rollout's picture and tells whether the size changed.
func (r *rollout) scale(ctx context.Context, rs *appsv1.ReplicaSet, size int32) (bool, error) {
	before := wanted(rs)
	updated := rs.DeepCopy()
	updated.Spec.Replicas = &size
	noted := setSizeAnnotations(updated, r.replicas, r.replicas+r.maxSurge)
	if size == before && !noted {
		return false, nil
	}
	written, err := r.c.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		return false, fmt.Errorf("scale ReplicaSet %s/%s from %d to %d: %w", rs.Namespace, rs.Name, before, size, err)
	}
	r.c.fresh.Wrote(written)
	r.replace(rs, written)
	if size == before {
		return false, nil
	}
	direction := "up"
	if size < before {
		direction = "down"
	}
	r.c.recorder.Eventf(r.cached, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, rs.Name, before, size)
	return true, nil
}

func (r *rollout) replace(before, after *appsv1.ReplicaSet) {
	if r.newSet == before {
		r.newSet = after
	}
	for i, rs := range r.old {
		if rs == before {
			r.old[i] = after
		}
	}
}

// oldPodsRun tells whether a pod of an old ReplicaSet still uses resources.
func (r *rollout) oldPodsRun() bool {
	for _, rs := range r.old {
		for _, pod := range controller.Owned[*corev1.Pod](r.c.podIndex, rs.UID) {
			if !controller.IsPodFinished(pod) {
				return true
			}
		}
	}
	return false
}
