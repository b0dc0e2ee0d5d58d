package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeConditions tells in the namespace's status how far the deletion is.
func (c *Controller) writeConditions(ctx context.Context, ns *corev1.Namespace, found *findings) (*corev1.Namespace, error) {
	updated := ns.DeepCopy()
	updated.Status.Phase = corev1.NamespaceTerminating
	for _, condition := range found.conditions() {
		setCondition(&updated.Status, condition, metav1.NewTime(c.clock.Now()))
	}
	if equality.Semantic.DeepEqual(updated.Status, ns.Status) {
		return ns, nil
	}
	return c.client.CoreV1().Namespaces().UpdateStatus(ctx, updated, metav1.UpdateOptions{})
}

func setCondition(status *corev1.NamespaceStatus, condition corev1.NamespaceCondition, now metav1.Time) {
	condition.LastTransitionTime = now
	i := slices.IndexFunc(status.Conditions, func(o corev1.NamespaceCondition) bool { return o.Type == condition.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if old := status.Conditions[i]; old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	status.Conditions[i] = condition
}

func (f *findings) conditions() []corev1.NamespaceCondition {
	return []corev1.NamespaceCondition{
		condition(corev1.NamespaceDeletionDiscoveryFailure, "DiscoveryFailed", failures("Discovery failed for some groups, %d failing: %v", f.discovery),
			"ResourcesDiscovered", "All resources successfully discovered"),
		condition(corev1.NamespaceDeletionGVParsingFailure, "GroupVersionParsingFailed", failures("%d failing: %v", f.parsing),
			"ParsedGroupVersions", "All legacy kube types successfully parsed"),
		condition(corev1.NamespaceDeletionContentFailure, "ContentDeletionFailed", failures("Failed to delete all resource types, %d remaining: %v", f.content),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		condition(corev1.NamespaceContentRemaining, "SomeResourcesRemain", f.remainingMessage(),
			"ContentRemoved", "All content successfully removed"),
		condition(corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain", f.finalizersMessage(),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
}

// condition is true with the problem as its message, or false when there is none.
func condition(kind corev1.NamespaceConditionType, reason, problem, goodReason, good string) corev1.NamespaceCondition {
	if problem == "" {
		return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: goodReason, Message: good}
	}
	return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: problem}
}

func failures(format string, errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return fmt.Sprintf(format, len(errs), errors.New(strings.Join(texts, ", ")))
}

func (f *findings) remainingMessage() string {
	var parts []string
	for gvr, left := range f.remaining {
		parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", gvr.Resource, gvr.Group, left.count))
	}
	return list("Some resources are remaining: ", parts)
}

func (f *findings) finalizersMessage() string {
	var parts []string
	for finalizer, count := range f.finalizers {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", finalizer, count))
	}
	return list("Some content in the namespace has finalizers remaining: ", parts)
}

func list(intro string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return intro + strings.Join(parts, ", ")
}
