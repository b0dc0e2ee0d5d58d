package replicationcontroller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller/replicas"
)

func statusOf(rc *corev1.ReplicationController) replicas.Status {
	s := replicas.Status{
		Replicas: rc.Status.Replicas, FullyLabeled: rc.Status.FullyLabeledReplicas,
		Ready: rc.Status.ReadyReplicas, Available: rc.Status.AvailableReplicas,
		ObservedGeneration: rc.Status.ObservedGeneration,
	}
	for _, c := range rc.Status.Conditions {
		if c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue {
			s.Failure = &replicas.Failure{Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return s
}

// WriteStatus replaces what this controller owns of the status. Conditions of others stay.
func (k *kind) WriteStatus(ctx context.Context, set *replicas.Set, s replicas.Status) error {
	rc := set.Object.(*corev1.ReplicationController).DeepCopy()
	rc.Status.Replicas, rc.Status.FullyLabeledReplicas = s.Replicas, s.FullyLabeled
	rc.Status.ReadyReplicas, rc.Status.AvailableReplicas = s.Ready, s.Available
	rc.Status.ObservedGeneration = s.ObservedGeneration
	var conditions []corev1.ReplicationControllerCondition
	for _, c := range rc.Status.Conditions {
		if c.Type != corev1.ReplicationControllerReplicaFailure {
			conditions = append(conditions, c)
		}
	}
	if s.Failure != nil {
		conditions = append(conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue,
			Reason: s.Failure.Reason, Message: s.Failure.Message, LastTransitionTime: metav1.NewTime(s.Failure.Since),
		})
	}
	rc.Status.Conditions = conditions
	_, err := k.client.CoreV1().ReplicationControllers(rc.Namespace).UpdateStatus(ctx, rc, metav1.UpdateOptions{})
	return err
}
