package deployment

import (
	"cmp"
	"context"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// resized tells whether the Deployment's size changed since its ReplicaSets were last scaled.
func (r *rollout) resized() bool {
	for _, rs := range active(r.all()) {
		if desired, found := intAnnotation(rs, DesiredReplicasAnnotation); found && desired != r.replicas {
			return true
		}
	}
	return false
}

// resize gives the Deployment's size to its ReplicaSets without moving the rollout: to the only active one, or else to all in proportion to their
// sizes, so that a bad new version does not get more weight by scaling.
func (r *rollout) resize(ctx context.Context) error {
	if only := r.activeOrLatest(); only != nil {
		_, err := r.scale(ctx, only, r.replicas)
		return err
	}
	if r.saturated() {
		for _, rs := range active(r.old) {
			if _, err := r.scale(ctx, rs, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	return r.spread(ctx)
}

// activeOrLatest is the only ReplicaSet with replicas, or, if none has any, the new or else the newest. It is nil if several have.
func (r *rollout) activeOrLatest() *appsv1.ReplicaSet {
	switch sets := active(r.all()); {
	case len(sets) == 1:
		return sets[0]
	case len(sets) > 1:
		return nil
	case r.newSet != nil:
		return r.newSet
	case len(r.old) > 0:
		return r.old[len(r.old)-1]
	}
	return nil
}

// saturated tells whether the new ReplicaSet serves alone.
func (r *rollout) saturated() bool {
	if r.newSet == nil {
		return false
	}
	desired, found := intAnnotation(r.newSet, DesiredReplicasAnnotation)
	return found && desired == r.replicas && wanted(r.newSet) == r.replicas && r.newSet.Status.AvailableReplicas == r.replicas
}

// spread hands out the difference between the allowed and the present number of pods in proportion. What rounding leaves goes to the
// largest set: the newest of the largest when pods are added, the oldest when they are removed.
func (r *rollout) spread(ctx context.Context) error {
	sets := active(r.all())
	allowed := int32(0)
	if r.replicas > 0 {
		allowed = r.replicas + r.maxSurge
	}
	change := allowed - sumWanted(sets)
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		age := olderFirst(a, b)
		if change > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(wanted(b), wanted(a)), age)
	})
	sizes := make([]int32, len(sets))
	rest := change
	for i, rs := range sets {
		share := r.share(rs)
		if change > 0 {
			share = min(share, rest)
		} else {
			share = max(share, rest)
		}
		if rest == 0 {
			share = 0
		}
		sizes[i] = wanted(rs) + share
		rest -= share
	}
	for i, rs := range sets {
		if i == 0 {
			sizes[i] = max(0, sizes[i]+rest)
		}
		if _, err := r.scale(ctx, rs, sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

// share is by how much a ReplicaSet should change if each kept its part of the whole.
func (r *rollout) share(rs *appsv1.ReplicaSet) int32 {
	if r.replicas == 0 {
		return -wanted(rs)
	}
	before, found := intAnnotation(rs, MaxReplicasAnnotation)
	if !found || before == 0 {
		before = r.cached.Status.Replicas
	}
	if before == 0 {
		return 0
	}
	size := math.Round(float64(wanted(rs)) * float64(r.replicas+r.maxSurge) / float64(before))
	return int32(size) - wanted(rs)
}
