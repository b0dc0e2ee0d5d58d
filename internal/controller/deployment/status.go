package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updateStatus counts, and judges progress. It works on the copy of the Deployment.
func (r *rollout) updateStatus() {
	s := &r.d.Status
	s.ObservedGeneration = r.d.Generation
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas = 0, 0, 0, 0
	terminating := int32(0)
	for _, rs := range r.all() {
		s.Replicas += rs.Status.Replicas
		s.ReadyReplicas += rs.Status.ReadyReplicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
		if rs.Status.TerminatingReplicas != nil {
			terminating += *rs.Status.TerminatingReplicas
		}
	}
	if r.newSet != nil {
		s.UpdatedReplicas = r.newSet.Status.Replicas
	}
	s.TerminatingReplicas = &terminating
	s.UnavailableReplicas = max(0, sumWanted(r.all())-s.AvailableReplicas)
	if s.AvailableReplicas >= r.replicas-r.maxUnavailable {
		r.setCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		r.setCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	if !r.d.Spec.Paused && r.d.DeletionTimestamp == nil {
		r.judgeProgress()
	}
	r.copyFailure()
}

// complete tells whether only new pods are left and all are available.
func (r *rollout) complete() bool {
	r.updateCounts()
	s := &r.d.Status
	return s.UpdatedReplicas == r.replicas && s.Replicas == r.replicas && s.AvailableReplicas == r.replicas &&
		r.newSet != nil && wanted(r.newSet) == r.replicas && sumWanted(r.old) == 0
}

// updateCounts is the part of updateStatus that complete needs.
func (r *rollout) updateCounts() {
	s := &r.d.Status
	s.Replicas, s.AvailableReplicas, s.UpdatedReplicas = 0, 0, 0
	for _, rs := range r.all() {
		s.Replicas += rs.Status.Replicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
	}
	if r.newSet != nil {
		s.UpdatedReplicas = r.newSet.Status.Replicas
	}
}

// judgeProgress keeps the condition Progressing: done, on the way, or stuck for longer than progressDeadlineSeconds.
func (r *rollout) judgeProgress() {
	if !r.hasDeadline() {
		r.removeCondition(appsv1.DeploymentProgressing)
		return
	}
	current := r.condition(appsv1.DeploymentProgressing)
	subject := fmt.Sprintf("Deployment %q", r.d.Name)
	if r.newSet != nil {
		subject = fmt.Sprintf("ReplicaSet %q", r.newSet.Name)
	}
	done := subject + " has successfully progressed."
	if r.d.Status.Replicas == r.d.Status.UpdatedReplicas && current != nil && current.Reason == "NewReplicaSetAvailable" {
		if current.Message == done {
			return // finished before; that a pod fails now is no matter of the rollout
		}
		// It tells of another ReplicaSet: the write that told of this one's start was lost.
		current.Reason, current.Message = "ReplicaSetUpdated", subject+" is progressing."
		current.LastUpdateTime = metav1.NewTime(r.c.clock.Now())
	}
	switch {
	case r.complete():
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", done)
	case r.progressed():
		r.touchProgress(subject + " is progressing.")
	case r.timedOut():
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", subject+" has timed out progressing.")
	}
}

// progressed compares with the status before: more new pods, fewer old ones, more ready or available ones.
func (r *rollout) progressed() bool {
	now, before := &r.d.Status, &r.cached.Status
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
}

// touchProgress renews the time from which the deadline counts.
func (r *rollout) touchProgress(message string) {
	now := metav1.NewTime(r.c.clock.Now())
	since := now
	if current := r.condition(appsv1.DeploymentProgressing); current != nil && current.Status == corev1.ConditionTrue {
		since = current.LastTransitionTime
	}
	r.putCondition(appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", Message: message,
		LastUpdateTime: now, LastTransitionTime: since,
	})
}

func (r *rollout) timedOut() bool {
	current := r.condition(appsv1.DeploymentProgressing)
	if current == nil || current.Reason == "NewReplicaSetAvailable" {
		return false
	}
	return current.Reason == "ProgressDeadlineExceeded" || r.c.clock.Now().After(current.LastUpdateTime.Add(r.deadline()))
}

func (r *rollout) hasDeadline() bool {
	return r.d.Spec.ProgressDeadlineSeconds != nil && *r.d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

func (r *rollout) deadline() time.Duration {
	return time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second
}

// awaitDeadline asks for a sync when the rollout would be stuck for too long.
func (c *Controller) awaitDeadline(r *rollout) {
	if !r.hasDeadline() || r.d.Spec.Paused {
		return
	}
	current := r.condition(appsv1.DeploymentProgressing)
	if current == nil || current.Reason == "ProgressDeadlineExceeded" || current.Reason == "NewReplicaSetAvailable" {
		return
	}
	left := current.LastUpdateTime.Add(r.deadline()).Sub(c.clock.Now())
	c.AddAfter(r.d.Namespace+"/"+r.d.Name, max(0, left)+time.Second)
}

// notePause shows in the condition Progressing that a pause stops the deadline.
func (r *rollout) notePause() {
	current := r.condition(appsv1.DeploymentProgressing)
	if !r.hasDeadline() || (current != nil && current.Reason == "ProgressDeadlineExceeded") {
		return
	}
	paused := current != nil && current.Reason == "DeploymentPaused"
	switch {
	case r.d.Spec.Paused && !paused:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	case !r.d.Spec.Paused && paused:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
	}
}

// copyFailure shows that pods of a ReplicaSet, the new one first, cannot be made.
func (r *rollout) copyFailure() {
	for _, rs := range slices.Backward(r.all()) {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				r.setCondition(appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	r.removeCondition(appsv1.DeploymentReplicaFailure)
}
