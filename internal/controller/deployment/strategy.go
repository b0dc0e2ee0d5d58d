package deployment

import (
	"context"
)

// roll moves replicas from old to new within maxSurge and maxUnavailable. Each sync moves in one direction only; the ReplicaSets' events
// bring the next one.
func (r *rollout) roll(ctx context.Context) error {
	if err := r.syncRevision(ctx, true); err != nil {
		return err
	}
	if moved, err := r.growNew(ctx); moved || err != nil {
		return err
	}
	if moved, err := r.shrinkOld(ctx); moved || err != nil {
		return err
	}
	if r.complete() {
		return r.cleanUp(ctx)
	}
	return nil
}

// growNew brings the new ReplicaSet to its size as far as maxSurge allows, or down to it at once.
func (r *rollout) growNew(ctx context.Context) (bool, error) {
	size := wanted(r.newSet)
	if size > r.replicas {
		return r.scale(ctx, r.newSet, r.replicas)
	}
	return r.scale(ctx, r.newSet, r.room(size))
}

// room is the size that the new ReplicaSet, now of the given size, can have with respect to the pods of all ReplicaSets. Pods that an old
// ReplicaSet is still to remove count: maxSurge holds for the pods that are there, not for those that are wanted.
func (r *rollout) room(size int32) int32 {
	others, known := occupied(r.old)
	if !known {
		return size
	}
	if r.newSet != nil && observed(r.newSet) {
		others += max(0, r.newSet.Status.Replicas-size)
	}
	free := max(0, r.replicas+r.maxSurge-others-size)
	return size + min(free, max(0, r.replicas-size))
}

// shrinkOld removes old pods: first those that are not available, which costs nothing, then others as far as
// maxUnavailable allows. New pods that are not available yet count against it.
func (r *rollout) shrinkOld(ctx context.Context) (bool, error) {
	old := active(r.old)
	if len(old) == 0 {
		return false, nil
	}
	minAvailable := r.replicas - r.maxUnavailable
	newUnavailable := wanted(r.newSet) - available(r.newSet)
	budget := sumWanted(old) + wanted(r.newSet) - minAvailable - newUnavailable
	if budget <= 0 {
		return false, nil
	}
	moved, err := r.dropUnavailable(ctx, budget)
	if err != nil {
		return moved, err
	}
	spare := available(r.newSet) - minAvailable
	for _, rs := range r.old {
		spare += available(rs)
	}
	for _, rs := range active(r.old) {
		count := min(spare, wanted(rs))
		if count <= 0 {
			continue
		}
		scaled, err := r.scale(ctx, rs, wanted(rs)-count)
		if err != nil {
			return moved, err
		}
		spare -= count
		moved = moved || scaled
	}
	return moved, nil
}

// dropUnavailable removes up to budget pods that are not available from the old ReplicaSets, the oldest first.
func (r *rollout) dropUnavailable(ctx context.Context, budget int32) (moved bool, err error) {
	for _, rs := range active(r.old) {
		count := min(budget, wanted(rs)-available(rs))
		if count <= 0 || !observed(rs) {
			continue
		}
		scaled, err := r.scale(ctx, rs, wanted(rs)-count)
		if err != nil {
			return moved, err
		}
		budget -= count
		moved = moved || scaled
	}
	return moved, nil
}

// recreate removes all old pods, waits until the last has ended, and only then makes new ones.
func (r *rollout) recreate(ctx context.Context) error {
	if err := r.syncRevision(ctx, false); err != nil {
		return err
	}
	moved := false
	for _, rs := range active(r.old) {
		scaled, err := r.scale(ctx, rs, 0)
		if err != nil {
			return err
		}
		moved = moved || scaled
	}
	if moved || r.oldPodsRun() {
		return nil
	}
	if r.newSet == nil {
		if err := r.syncRevision(ctx, true); err != nil {
			return err
		}
	}
	if scaled, err := r.scale(ctx, r.newSet, r.replicas); scaled || err != nil {
		return err
	}
	if r.complete() {
		return r.cleanUp(ctx)
	}
	return nil
}
