package statefulset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// count counts the pods, and ends a rollout that is done.
func (r *round) count() {
	s := &r.set.Status
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas = 0, 0, 0, 0, 0
	for _, pod := range r.pods {
		s.Replicas++
		if pod.Status.Phase == corev1.PodRunning && controller.IsPodReady(pod) {
			s.ReadyReplicas++
		}
		if r.healthy(pod) {
			s.AvailableReplicas++
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		if revisionOf(pod) == r.current.Name {
			s.CurrentReplicas++
		}
		if revisionOf(pod) == r.update.Name {
			s.UpdatedReplicas++
		}
	}
	size := int32(sizeOf(r.set))
	if r.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType &&
		s.UpdatedReplicas == size && s.ReadyReplicas == size && s.Replicas == size {
		s.CurrentRevision, s.CurrentReplicas = s.UpdateRevision, s.UpdatedReplicas
	}
	if r.next > 0 {
		r.c.AddAfter(r.key, r.next)
	}
}

func (r *round) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(r.set.Status, r.cached.Status) {
		return nil
	}
	_, err := r.c.client.AppsV1().StatefulSets(r.set.Namespace).UpdateStatus(ctx, r.set, metav1.UpdateOptions{})
	return err
}
