package podgc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// outOfService tells whether the node is known to be off: not ready, and tainted by somebody who made sure of it.
func outOfService(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

func (c *Controller) syncNode(ctx context.Context, name string) error {
	node, err := c.nodes.Get(name)
	switch {
	case err == nil && outOfService(node):
		return c.removeAll(ctx, name, nil)
	case !apierrors.IsNotFound(err):
		return err
	}
	// The cache may be behind: ask the API server before anything is removed.
	if _, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return c.removeAll(ctx, name, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
	})
}

// removeAll removes the pods of a node: all of them if there is a reason to tell them, else those that are being deleted.
func (c *Controller) removeAll(ctx context.Context, node string, disruption *corev1.PodCondition) error {
	reason := reasonOutOfService
	if disruption != nil {
		reason = reasonOrphaned
	}
	var errs []error
	for _, pod := range controller.PodsOnNode(c.podIndex, node) {
		if disruption == nil && (pod.DeletionTimestamp == nil || controller.IsPodReady(pod)) {
			continue
		}
		errs = append(errs, c.remove(ctx, pod, reason, disruption))
	}
	return errors.Join(errs...)
}

// remove marks the pod as failed if it has not finished, so that its controller counts it, and removes it without waiting for a node.
func (c *Controller) remove(ctx context.Context, pod *corev1.Pod, reason string, disruption *corev1.PodCondition) error {
	if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && controller.IsPodFinished(pod) {
		return nil // only finalizers are left to wait for
	}
	pods := c.client.CoreV1().Pods(pod.Namespace)
	if !controller.IsPodFinished(pod) {
		failed := pod.DeepCopy()
		failed.Status.Phase = corev1.PodFailed
		if disruption != nil {
			condition := *disruption
			condition.LastTransitionTime = metav1.NewTime(c.clock.Now())
			condition.ObservedGeneration = pod.Generation
			failed.Status.Conditions = slices.DeleteFunc(failed.Status.Conditions, func(o corev1.PodCondition) bool { return o.Type == condition.Type })
			failed.Status.Conditions = append(failed.Status.Conditions, condition)
		}
		if _, err := pods.UpdateStatus(ctx, failed, metav1.UpdateOptions{}); err != nil {
			failures.WithLabelValues(pod.Namespace, reason).Inc()
			return controller.IgnoreNotFound(err)
		}
	}
	now := int64(0)
	err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if controller.IgnoreNotFound(err) != nil {
		failures.WithLabelValues(pod.Namespace, reason).Inc()
		return fmt.Errorf("remove pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	removals.WithLabelValues(pod.Namespace, reason).Inc()
	return nil
}

// trimFinished removes the oldest finished pods beyond the threshold, evicted ones first.
func (c *Controller) trimFinished(ctx context.Context) error {
	var pods []*corev1.Pod
	for _, key := range c.finished.keys() {
		if pod, err := c.pods.Pods(key.Namespace).Get(key.Name); err == nil && controller.IsPodFinished(pod) && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(evictedFirst(a, b), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var errs []error
	for _, pod := range pods[:max(0, len(pods)-c.threshold)] {
		errs = append(errs, c.remove(ctx, pod, reasonTerminated, nil))
	}
	return errors.Join(errs...)
}

func evictedFirst(a, b *corev1.Pod) int {
	x, y := a.Status.Reason == "Evicted", b.Status.Reason == "Evicted"
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// finished is the set of pods that have ended and are not being deleted.
type finished struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]bool
}

func newFinished() *finished { return &finished{pods: map[types.NamespacedName]bool{}} }

// note brings the set up to date with a pod and returns its size, or 0 if the pod does not count.
func (f *finished) note(pod *corev1.Pod) int {
	if !controller.IsPodFinished(pod) || pod.DeletionTimestamp != nil {
		f.remove(pod)
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
	return len(f.pods)
}

func (f *finished) remove(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

func (f *finished) keys() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(f.pods))
	for key := range f.pods {
		keys = append(keys, key)
	}
	return keys
}
