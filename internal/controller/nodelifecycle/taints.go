package nodelifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pressures are the conditions that keep new pods away, with their taints.
var pressures = []struct {
	condition corev1.NodeConditionType
	taint     string
}{
	{corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure},
	{corev1.NodePIDPressure, corev1.TaintNodePIDPressure},
	{corev1.NodeNetworkUnavailable, corev1.TaintNodeNetworkUnavailable},
}

// managed tells whether a taint is this controller's.
func managed(t *corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	case corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable:
		return t.Effect == corev1.TaintEffectNoSchedule
	}
	return false
}

// disruption is the key of the taints of a node that is not ready, or "".
func disruption(node *corev1.Node) string {
	switch conditionOf(node, corev1.NodeReady).Status {
	case corev1.ConditionTrue:
		return ""
	case corev1.ConditionFalse:
		return corev1.TaintNodeNotReady
	case corev1.ConditionUnknown:
		return corev1.TaintNodeUnreachable
	}
	return ""
}

// syncTaints brings the node's taints in line with its conditions.
func (c *Controller) syncTaints(ctx context.Context, node *corev1.Node) error {
	var wanted []corev1.Taint
	if node.Spec.Unschedulable {
		wanted = append(wanted, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, p := range pressures {
		if conditionOf(node, p.condition).Status == corev1.ConditionTrue {
			wanted = append(wanted, corev1.Taint{Key: p.taint, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	if key := disruption(node); key != "" {
		wanted = append(wanted, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		evict := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
		if (has(node, &evict) && c.zones.anyReady()) || c.mayEvict(node) {
			wanted = append(wanted, evict)
		}
	}
	return c.writeTaints(ctx, node, wanted)
}

func has(node *corev1.Node, taint *corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}

// mayEvict asks the node's zone for leave to remove its pods, or for the time to ask again.
func (c *Controller) mayEvict(node *corev1.Node) bool {
	allowed, wait := c.zones.admit(node, c.clock.Now())
	if !allowed && wait > 0 {
		c.AddAfter(node.Name, wait)
	}
	return allowed
}

// wakeDisrupted looks at the nodes again whose eviction depends on the state of all zones.
func (c *Controller) wakeDisrupted() {
	for _, name := range c.zones.disrupted() {
		c.Add(name)
	}
}

func (c *Controller) writeTaints(ctx context.Context, node *corev1.Node, wanted []corev1.Taint) error {
	var taints []corev1.Taint
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if !managed(t) || slices.ContainsFunc(wanted, func(w corev1.Taint) bool { return w.MatchTaint(t) }) {
			taints = append(taints, *t)
		}
	}
	now := metav1.NewTime(c.clock.Now())
	for _, t := range wanted {
		if !has(node, &t) {
			t.TimeAdded = &now
			taints = append(taints, t)
		}
	}
	if equality.Semantic.DeepEqual(taints, node.Spec.Taints) {
		return nil
	}
	updated := node.DeepCopy()
	updated.Spec.Taints = taints
	written, err := c.client.CoreV1().Nodes().Update(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the taints of node %s: %w", node.Name, err)
	}
	c.fresh.Wrote(written)
	return nil
}
