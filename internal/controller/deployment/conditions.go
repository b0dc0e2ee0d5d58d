package deployment

import (
	"cmp"
	"context"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

func (r *rollout) condition(kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range r.d.Status.Conditions {
		if r.d.Status.Conditions[i].Type == kind {
			return &r.d.Status.Conditions[i]
		}
	}
	return nil
}

// setCondition sets a condition. One that already has the status and the reason stays as it is, with its times.
func (r *rollout) setCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(r.c.clock.Now())
	since := now
	if current := r.condition(kind); current != nil {
		if current.Status == status && current.Reason == reason {
			return
		}
		if current.Status == status {
			since = current.LastTransitionTime
		}
	}
	r.putCondition(appsv1.DeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: since,
	})
}

// putCondition replaces a condition where it stands, or adds it.
func (r *rollout) putCondition(condition appsv1.DeploymentCondition) {
	if current := r.condition(condition.Type); current != nil {
		*current = condition
		return
	}
	r.d.Status.Conditions = append(r.d.Status.Conditions, condition)
}

func (r *rollout) removeCondition(kind appsv1.DeploymentConditionType) {
	r.d.Status.Conditions = slices.DeleteFunc(r.d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// cleanUp removes the ReplicaSets of the oldest revisions beyond revisionHistoryLimit. Only such that are empty and whose controller has seen that go.
func (r *rollout) cleanUp(ctx context.Context) error {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(r.old), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(cmp.Compare(revisionOf(a), revisionOf(b)), olderFirst(a, b))
	})
	for _, rs := range alive[:max(0, len(alive)-int(*limit))] {
		if rs.Status.Replicas != 0 || wanted(rs) != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		err := r.c.client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(rs.UID))})
		if controller.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
