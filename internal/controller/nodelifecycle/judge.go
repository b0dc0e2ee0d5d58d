package nodelifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// watched are the conditions that nobody can vouch for when the node is silent.
var watched = []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

// conditionOf returns a condition of the node; one that is not there has no status.
func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{Type: kind}
}

// judge makes the conditions of a silent node Unknown, and asks for a sync at the time when it would be silent for too long.
func (c *Controller) judge(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	limit := gracePeriod
	if conditionOf(node, corev1.NodeReady).Status == "" {
		limit = startupGracePeriod
	}
	if silent := c.silentFor(node.Name); silent < limit {
		c.AddAfter(node.Name, limit-silent)
		return node, nil
	}
	updated, now := node.DeepCopy(), metav1.NewTime(c.clock.Now())
	changed := false
	for _, kind := range watched {
		changed = giveUp(updated, kind, now) || changed
	}
	if !changed {
		return node, nil
	}
	c.recorder.Eventf(node, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
	written, err := c.client.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("give up node %s: %w", node.Name, err)
	}
	c.fresh.Wrote(written)
	return written, nil
}

// giveUp makes a condition Unknown and tells whether it was not.
func giveUp(node *corev1.Node, kind corev1.NodeConditionType, now metav1.Time) bool {
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status == corev1.ConditionUnknown {
			return false
		}
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
		c.LastTransitionTime = now
		return true
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: kind, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
		LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: now,
	})
	return true
}

// markPods takes the pods of a node that is not ready out of service.
func (c *Controller) markPods(ctx context.Context, node *corev1.Node) error {
	var errs []error
	for _, pod := range controller.PodsOnNode(c.podIndex, node.Name) {
		if !controller.IsPodReady(pod) {
			continue
		}
		updated := pod.DeepCopy()
		ready := controller.PodCondition(updated, corev1.PodReady)
		ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(c.clock.Now())
		_, err := c.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		switch {
		case err == nil:
			c.recorder.Event(pod, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
		case !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("take pod %s/%s out of service: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(errs...)
}
