package life

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions puts in those that nodes answer for, and keeps those of others.
func (p *Pod) conditions(out *corev1.PodStatus, now time.Time) {
	containers := p.containersReady(out)
	own := []corev1.PodCondition{p.sandboxReady(), p.initialized(out), p.ready(containers), containers}
	old := p.api.Status.Conditions
	if find(old, corev1.PodScheduled) == nil {
		own = append(own, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	}
	if p.ending != nil && p.ending.condition != nil && find(old, p.ending.condition.Type) == nil {
		own = append(own, *p.ending.condition)
	}
	for i := range own {
		c := &own[i]
		c.ObservedGeneration, c.LastTransitionTime = p.api.Generation, metav1.NewTime(now.Truncate(time.Second))
		if before := find(old, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	out.Conditions = own
	for _, c := range old {
		if find(own, c.Type) == nil {
			out.Conditions = append(out.Conditions, c)
		}
	}
}

func find(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	if i := slices.IndexFunc(list, func(c corev1.PodCondition) bool { return c.Type == t }); i >= 0 {
		return &list[i]
	}
	return nil
}

func isTrue(t corev1.PodConditionType, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason}
}

func isFalse(t corev1.PodConditionType, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func (p *Pod) sandboxReady() corev1.PodCondition {
	if !p.ended && (p.ip != "" || p.api.Spec.HostNetwork && p.begun()) {
		return isTrue(corev1.PodReadyToStartContainers, "")
	}
	return isFalse(corev1.PodReadyToStartContainers, "", "")
}

func (p *Pod) initialized(out *corev1.PodStatus) corev1.PodCondition {
	if out.Phase == corev1.PodSucceeded {
		return isTrue(corev1.PodInitialized, "PodCompleted")
	}
	var names []string
	for _, c := range p.containers {
		if c.kind == kindInit && !c.succeeded() || c.kind == kindSidecar && c.id == "" {
			names = append(names, c.spec.Name)
		}
		if c.kind == kindOrdinary && c.id != "" {
			return isTrue(corev1.PodInitialized, "") // it was, and stays so
		}
	}
	if len(names) > 0 {
		return isFalse(corev1.PodInitialized, "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %s", names))
	}
	return isTrue(corev1.PodInitialized, "")
}

func (p *Pod) containersReady(out *corev1.PodStatus) corev1.PodCondition {
	switch out.Phase {
	case corev1.PodSucceeded:
		return isFalse(corev1.ContainersReady, "PodCompleted", "")
	case corev1.PodFailed:
		return isFalse(corev1.ContainersReady, "PodFailed", "")
	}
	var names []string
	for i := range out.InitContainerStatuses {
		if s := &out.InitContainerStatuses[i]; !s.Ready && isSidecar(&p.api.Spec.InitContainers[i]) {
			names = append(names, s.Name)
		}
	}
	for i := range out.ContainerStatuses {
		if s := &out.ContainerStatuses[i]; !s.Ready {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		return isFalse(corev1.ContainersReady, "ContainersNotReady", fmt.Sprintf("containers with unready status: %s", names))
	}
	return isTrue(corev1.ContainersReady, "")
}

// ready adds the pod's readiness gates.
func (p *Pod) ready(containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		return isFalse(corev1.PodReady, containers.Reason, containers.Message)
	}
	message := ""
	for _, gate := range p.api.Spec.ReadinessGates {
		text := ""
		if c := find(p.api.Status.Conditions, gate.ConditionType); c == nil {
			text = fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType)
		} else if c.Status != corev1.ConditionTrue {
			text = fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status)
		}
		if text != "" && message != "" {
			message += ", "
		}
		message += text
	}
	if message != "" {
		return isFalse(corev1.PodReady, "ReadinessGatesNotReady", message)
	}
	return isTrue(corev1.PodReady, "")
}
