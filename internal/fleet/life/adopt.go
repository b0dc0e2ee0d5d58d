package life

import (
	corev1 "k8s.io/api/core/v1"
)

// adopt takes over how far the API says that a container is. Its times there have whole seconds, so what was planned comes up to a second earlier than it would have.
func (c *container) adopt(p *Pod) {
	s := statusOf(&p.api.Status, c.spec.Name)
	if s == nil || s.ContainerID == "" {
		return
	}
	c.attempt, c.id = s.RestartCount, s.ContainerID
	c.former = s.LastTerminationState.Terminated
	switch {
	case s.State.Running != nil:
		c.plan(p, s.State.Running.StartedAt.Time)
	case s.State.Terminated != nil:
		c.adoptEnd(p, s.State.Terminated)
	case s.LastTerminationState.Terminated != nil:
		// It waits to run again.
		c.former = nil
		c.adoptEnd(p, s.LastTerminationState.Terminated)
	}
}

func (c *container) adoptEnd(p *Pod, t *corev1.ContainerStateTerminated) {
	c.state, c.started, c.id = exited, t.StartedAt.Time, t.ContainerID
	c.does = p.behavior.Container(c.spec, c.kind == kindInit, c.attempt)
	c.end = end{at: t.FinishedAt.Time, code: t.ExitCode, reason: t.Reason, message: t.Message}
	if p.ended || p.api.DeletionTimestamp != nil || c.kind == kindEphemeral || !restarts(&p.api.Spec, c.spec, c.kind, t.ExitCode) {
		return
	}
	// The API does not have the back-off: it is taken to have doubled with each run.
	for range min(c.attempt-1, 6) {
		c.delay = min(max(backoffFirst, 2*c.delay), backoffMax)
	}
	c.backoff()
}

// statusOf is what a pod's status has of a container.
func statusOf(status *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
