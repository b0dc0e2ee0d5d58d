package core

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func podColumns() []resource.Column[*corev1.Pod] {
	return []resource.Column[*corev1.Pod]{
		{Name: "Ready", Description: "Containers that are ready, of all.", Value: func(p *corev1.Pod) any { return readyText(p) }},
		{Name: "Status", Description: "What the pod is doing, or what keeps it from it.", Value: func(p *corev1.Pod) any { return podStatus(p) }},
		{Name: "Restarts", Description: "How often containers were restarted, and when last.", Value: func(p *corev1.Pod) any { return restartsText(p) }},
		resource.Age[*corev1.Pod](),
		{Name: "IP", Wide: true, Description: "Address of the pod.", Value: func(p *corev1.Pod) any { return resource.OrNone(p.Status.PodIP) }},
		{Name: "Node", Wide: true, Description: "Node that the pod is bound to.", Value: func(p *corev1.Pod) any { return resource.OrNone(p.Spec.NodeName) }},
		{Name: "Nominated Node", Wide: true, Description: "Node on which room is being made for the pod.", Value: func(p *corev1.Pod) any { return resource.OrNone(p.Status.NominatedNodeName) }},
		{Name: "Readiness Gates", Wide: true, Description: "Readiness gates that are met, of all.", Value: func(p *corev1.Pod) any { return gatesText(p) }},
	}
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func sidecars(p *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; isSidecar(c) {
			names[c.Name] = true
		}
	}
	return names
}

func readyText(p *corev1.Pod) string {
	helpers := sidecars(p)
	total, ready := len(p.Spec.Containers)+len(helpers), 0
	for _, s := range p.Status.ContainerStatuses {
		if s.Ready && s.State.Running != nil {
			ready++
		}
	}
	for _, s := range p.Status.InitContainerStatuses {
		if helpers[s.Name] && s.Started != nil && *s.Started && s.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, total)
}

// restartsText counts the restarts of containers and sidecars; while the pod initialises, those of init containers.
func restartsText(p *corev1.Pod) string {
	statuses := p.Status.InitContainerStatuses
	if _, initialising := initStatus(p); !initialising {
		helpers := sidecars(p)
		statuses = nil
		for _, s := range p.Status.InitContainerStatuses {
			if helpers[s.Name] {
				statuses = append(statuses, s)
			}
		}
		statuses = append(statuses, p.Status.ContainerStatuses...)
	}
	total := 0
	var last metav1.Time
	for _, s := range statuses {
		total += int(s.RestartCount)
		if t := s.LastTerminationState.Terminated; t != nil && last.Before(&t.FinishedAt) {
			last = t.FinishedAt
		}
	}
	if total == 0 || last.IsZero() {
		return strconv.Itoa(total)
	}
	return fmt.Sprintf("%d (%s ago)", total, resource.Since(last))
}

func podStatus(p *corev1.Pod) string {
	status := baseStatus(p)
	if text, initialising := initStatus(p); initialising {
		status = text
	} else if text := containersStatus(p); text != "" {
		status = text
	}
	switch {
	case p.DeletionTimestamp == nil:
		return status
	case p.Status.Reason == "NodeLost":
		return "Unknown"
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return status
	}
	return "Terminating"
}

func baseStatus(p *corev1.Pod) string {
	status := string(p.Status.Phase)
	if p.Status.Reason != "" {
		status = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			status = corev1.PodReasonSchedulingGated
		}
	}
	return status
}

// initStatus tells of the first init container that is not done yet.
func initStatus(p *corev1.Pod) (string, bool) {
	helpers := sidecars(p)
	for i, s := range p.Status.InitContainerStatuses {
		t, w := s.State.Terminated, s.State.Waiting
		switch {
		case t != nil && t.ExitCode == 0, helpers[s.Name] && s.Started != nil && *s.Started:
			continue
		case t != nil:
			return "Init:" + terminatedText(t), true
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			return "Init:" + w.Reason, true
		}
		return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers)), true
	}
	return "", false
}

func terminatedText(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// containersStatus is what the first container that has something to tell says; "" when none has.
func containersStatus(p *corev1.Pod) string {
	status, running := "", false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := &p.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			status = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			status = terminatedText(s.State.Terminated)
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	if status != "Completed" || !running {
		return status
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return "Running"
		}
	}
	return "NotReady"
}

func gatesText(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return resource.None
	}
	met := 0
	for _, gate := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue {
				met++
			}
		}
	}
	return fmt.Sprintf("%d/%d", met, len(p.Spec.ReadinessGates))
}
