package lifecycle

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions puts the agent's conditions in front and keeps those of others.
func (d *decider) conditions(status *v1.PodStatus) {
	own := []v1.PodCondition{
		d.sandboxReady(),
		d.initialized(status),
	}
	containers := d.containersReady(status)
	own = append(own, d.ready(containers), containers)
	if d.mem.Ending != nil && d.mem.Ending.Condition != nil && condition(&d.pod.Status, d.mem.Ending.Condition.Type) == nil {
		own = append(own, *d.mem.Ending.Condition)
	}
	if d.mem.Pending != nil {
		own = append(own, *d.mem.Pending)
	}
	if c := d.resizing(); c != nil {
		own = append(own, *c)
	}
	for i := range own {
		c := &own[i]
		c.ObservedGeneration = d.pod.Generation
		c.LastTransitionTime = metav1.NewTime(d.Now)
		if old := condition(&d.pod.Status, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	status.Conditions = own
	for _, c := range d.pod.Status.Conditions {
		if !OwnCondition(c.Type) {
			status.Conditions = append(status.Conditions, c)
		}
	}
}

// OwnCondition tells whether the node agent answers for a condition. DisruptionTarget is set by whoever disrupts, and stays.
func OwnCondition(t v1.PodConditionType) bool {
	switch t {
	case v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodResizePending, v1.PodResizeInProgress:
		return true
	}
	return false
}

func condition(status *v1.PodStatus, t v1.PodConditionType) *v1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return &status.Conditions[i]
		}
	}
	return nil
}

func isTrue(t v1.PodConditionType) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionTrue}
}

func isFalse(t v1.PodConditionType, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

// sandboxReady is PodReadyToStartContainers: the sandbox stands and has its network (KEP-3085).
func (d *decider) sandboxReady() v1.PodCondition {
	s := d.Observed.current()
	if s != nil && s.Ready && (len(s.IPs) > 0 || d.pod.Spec.HostNetwork) {
		return isTrue(v1.PodReadyToStartContainers)
	}
	return isFalse(v1.PodReadyToStartContainers, "", "")
}

func (d *decider) initialized(status *v1.PodStatus) v1.PodCondition {
	var incomplete []string
	for i := range d.pod.Spec.InitContainers {
		c, s := &d.pod.Spec.InitContainers[i], &status.InitContainerStatuses[i]
		done := s.Ready
		if IsSidecar(c) {
			done = s.Started != nil && *s.Started
		}
		if !done {
			incomplete = append(incomplete, c.Name)
		}
	}
	if status.Phase == v1.PodSucceeded {
		c := isTrue(v1.PodInitialized)
		c.Reason = "PodCompleted"
		return c
	}
	// Once ordinary containers were begun, the pod was initialised and stays so.
	if len(incomplete) > 0 && !anyBegun(status.ContainerStatuses) {
		return isFalse(v1.PodInitialized, "ContainersNotInitialized", unready("incomplete", incomplete))
	}
	return isTrue(v1.PodInitialized)
}

func anyBegun(list []v1.ContainerStatus) bool {
	for i := range list {
		if list[i].ContainerID != "" {
			return true
		}
	}
	return false
}

func (d *decider) containersReady(status *v1.PodStatus) v1.PodCondition {
	switch status.Phase {
	case v1.PodSucceeded:
		return isFalse(v1.ContainersReady, "PodCompleted", "")
	case v1.PodFailed:
		return isFalse(v1.ContainersReady, "PodFailed", "")
	}
	var names []string
	for i := range d.pod.Spec.InitContainers {
		if s := &status.InitContainerStatuses[i]; IsSidecar(&d.pod.Spec.InitContainers[i]) && !s.Ready {
			names = append(names, s.Name)
		}
	}
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; !s.Ready {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		return isFalse(v1.ContainersReady, "ContainersNotReady", unready("unready", names))
	}
	return isTrue(v1.ContainersReady)
}

// ready is the pod's Ready condition: all containers are, and so are the readiness gates.
func (d *decider) ready(containers v1.PodCondition) v1.PodCondition {
	if containers.Status != v1.ConditionTrue {
		return isFalse(v1.PodReady, containers.Reason, containers.Message)
	}
	var messages []string
	for _, gate := range d.pod.Spec.ReadinessGates {
		c := condition(&d.pod.Status, gate.ConditionType)
		if c == nil {
			messages = append(messages, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		} else if c.Status != v1.ConditionTrue {
			messages = append(messages, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	if len(messages) > 0 {
		return isFalse(v1.PodReady, "ReadinessGatesNotReady", strings.Join(messages, ", "))
	}
	return isTrue(v1.PodReady)
}

func unready(what string, names []string) string {
	return fmt.Sprintf("containers with %s status: %s", what, names)
}
