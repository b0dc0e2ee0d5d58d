package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// count fills in the numbers of the status.
func (c *Controller) count(b, event *policyv1.PodDisruptionBudget) error {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	pods, err := c.pods.Pods(b.Namespace).List(selector)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		c.recorder.Event(event, corev1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	expected, desired, err := c.expect(b, pods)
	if err != nil {
		if !failing(event, err) {
			c.recorder.Eventf(event, corev1.EventTypeWarning, "CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %v", err)
		}
		return err
	}
	disrupted := c.disrupted(b, event, pods)
	healthy := int32(0)
	for _, pod := range pods {
		if _, going := disrupted[pod.Name]; !going && pod.DeletionTimestamp == nil && controller.IsPodReady(pod) {
			healthy++
		}
	}
	b.Status.ExpectedPods, b.Status.DesiredHealthy, b.Status.CurrentHealthy = expected, desired, healthy
	b.Status.DisruptionsAllowed = 0
	if expected > 0 {
		b.Status.DisruptionsAllowed = max(0, healthy-desired)
	}
	b.Status.DisruptedPods, b.Status.ObservedGeneration = disrupted, b.Generation
	return nil
}

// disrupted keeps the evicted pods whose deletion does not show yet. One whose deletion takes too long counts as there again.
func (c *Controller) disrupted(b, event *policyv1.PodDisruptionBudget, pods []*corev1.Pod) map[string]metav1.Time {
	if b.Status.DisruptedPods == nil {
		return nil
	}
	now, kept := c.clock.Now(), map[string]metav1.Time{}
	for _, pod := range pods {
		since, found := b.Status.DisruptedPods[pod.Name]
		if !found || pod.DeletionTimestamp != nil {
			continue
		}
		if left := since.Add(deletionTimeout).Sub(now); left > 0 {
			kept[pod.Name] = since
			c.AddAfter(b.Namespace+"/"+b.Name, left+time.Second)
			continue
		}
		c.recorder.Eventf(pod, corev1.EventTypeWarning, "NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't", event.Namespace, event.Name)
	}
	return kept
}

// expect is how many pods there should be and how many of them must be healthy. A share is taken of the sizes of the pods' controllers: the pods that
// are there may be too few at this moment.
func (c *Controller) expect(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, desired int32, err error) {
	switch {
	case b.Spec.MaxUnavailable != nil:
		if expected, err = c.scale(pods); err != nil {
			return 0, 0, err
		}
		most, err := intstrutil.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(expected), true)
		return expected, max(0, expected-int32(most)), err
	case b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstrutil.String:
		if expected, err = c.scale(pods); err != nil {
			return 0, 0, err
		}
		least, err := intstrutil.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(expected), true)
		return expected, int32(least), err
	case b.Spec.MinAvailable != nil:
		return int32(len(pods)), b.Spec.MinAvailable.IntVal, nil
	}
	return int32(len(pods)), 0, nil
}

// scale sums the sizes of the controllers of the pods.
func (c *Controller) scale(pods []*corev1.Pod) (total int32, err error) {
	seen := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			continue // a pod on its own has no size that it is a part of
		}
		uid, size, err := c.sizeOf(pod.Namespace, ref)
		if err != nil {
			return 0, err
		}
		if !seen[uid] {
			seen[uid] = true
			total += size
		}
	}
	return total, nil
}

// sizeOf follows a ReplicaSet to its Deployment, whose size does not move during a rollout.
func (c *Controller) sizeOf(namespace string, ref *metav1.OwnerReference) (types.UID, int32, error) {
	switch ref.Kind {
	case "ReplicaSet":
		rs, err := c.sets.ReplicaSets(namespace).Get(ref.Name)
		if err != nil {
			return "", 0, err
		}
		if up := metav1.GetControllerOfNoCopy(rs); up != nil && up.Kind == "Deployment" {
			d, err := c.deployments.Deployments(namespace).Get(up.Name)
			if err != nil {
				return "", 0, err
			}
			return d.UID, ptr.Deref(d.Spec.Replicas, 1), nil
		}
		return rs.UID, ptr.Deref(rs.Spec.Replicas, 1), nil
	case "StatefulSet":
		set, err := c.stateful.StatefulSets(namespace).Get(ref.Name)
		if err != nil {
			return "", 0, err
		}
		return set.UID, ptr.Deref(set.Spec.Replicas, 1), nil
	case "ReplicationController":
		rc, err := c.controllers.ReplicationControllers(namespace).Get(ref.Name)
		if err != nil {
			return "", 0, err
		}
		return rc.UID, ptr.Deref(rc.Spec.Replicas, 1), nil
	}
	return "", 0, fmt.Errorf("the size of %s %s/%s is not known: use minAvailable with a number for its pods", ref.Kind, namespace, ref.Name)
}

// failing tells whether the budget's condition already says so.
func failing(b *policyv1.PodDisruptionBudget, problem error) bool {
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason && c.Message == problem.Error() {
			return true
		}
	}
	return false
}
