package replicaset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller/replicas"
)

func statusOf(rs *appsv1.ReplicaSet) replicas.Status {
	s := replicas.Status{
		Replicas: rs.Status.Replicas, FullyLabeled: rs.Status.FullyLabeledReplicas,
		Ready: rs.Status.ReadyReplicas, Available: rs.Status.AvailableReplicas,
		Terminating: rs.Status.TerminatingReplicas, ObservedGeneration: rs.Status.ObservedGeneration,
	}
	for _, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			s.Failure = &replicas.Failure{Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return s
}

// WriteStatus replaces what this controller owns of the status. Conditions of others stay.
func (k *kind) WriteStatus(ctx context.Context, set *replicas.Set, s replicas.Status) error {
	rs := set.Object.(*appsv1.ReplicaSet).DeepCopy()
	rs.Status.Replicas, rs.Status.FullyLabeledReplicas = s.Replicas, s.FullyLabeled
	rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = s.Ready, s.Available
	rs.Status.TerminatingReplicas, rs.Status.ObservedGeneration = s.Terminating, s.ObservedGeneration
	var conditions []appsv1.ReplicaSetCondition
	for _, c := range rs.Status.Conditions {
		if c.Type != appsv1.ReplicaSetReplicaFailure {
			conditions = append(conditions, c)
		}
	}
	if s.Failure != nil {
		conditions = append(conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			Reason: s.Failure.Reason, Message: s.Failure.Message, LastTransitionTime: metav1.NewTime(s.Failure.Since),
		})
	}
	rs.Status.Conditions = conditions
	_, err := k.client.AppsV1().ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
	return err
}
