package job

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// judgePods applies what is decided pod by pod: successes of indexes, the pod failure policy, and the limit per index.
func (a *attempt) judgePods() {
	if isIndexed(a.job) {
		for _, pod := range a.newSucceeded {
			if i := indexOf(pod, completionsOf(a.job)); i >= 0 {
				a.completed = a.completed.with(i)
			}
		}
	}
	for _, pod := range a.newFailed {
		action, _ := a.match(pod)
		if action == batchv1.PodFailurePolicyActionIgnore {
			a.ignored.Insert(pod.UID)
			continue
		}
		i := indexOf(pod, completionsOf(a.job))
		limit := a.perIndexLimit()
		if limit == nil || i < 0 || a.completed.has(i) {
			continue
		}
		if action == batchv1.PodFailurePolicyActionFailIndex || failureCount(pod)+1 > int(*limit) {
			a.failedIndexes = a.failedIndexes.with(i)
		}
	}
}

// failureCount is how often the pod's index had failed before the pod was made.
func failureCount(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobIndexFailureCountAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// byFailurePolicy ends the Job when a failed pod matches a rule that says so.
func (a *attempt) byFailurePolicy() *verdict {
	for _, pod := range a.pods {
		if pod.Status.Phase != corev1.PodFailed {
			continue
		}
		if action, message := a.match(pod); action == batchv1.PodFailurePolicyActionFailJob {
			return &verdict{false, batchv1.JobReasonPodFailurePolicy, message}
		}
	}
	return nil
}

// match finds the first rule of the pod failure policy that a failed pod matches.
func (a *attempt) match(pod *corev1.Pod) (batchv1.PodFailurePolicyAction, string) {
	if a.job.Spec.PodFailurePolicy == nil || pod.Status.Phase != corev1.PodFailed {
		return batchv1.PodFailurePolicyActionCount, ""
	}
	for i, rule := range a.job.Spec.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil {
			if status := matchExitCodes(pod, rule.OnExitCodes); status != nil {
				return rule.Action, fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v matching %v rule at index %d",
					status.Name, pod.Namespace, pod.Name, status.State.Terminated.ExitCode, rule.Action, i)
			}
		} else if condition := matchConditions(pod, rule.OnPodConditions); condition != nil {
			return rule.Action, fmt.Sprintf("Pod %s/%s has condition %v matching %v rule at index %d",
				pod.Namespace, pod.Name, condition.Type, rule.Action, i)
		}
	}
	return batchv1.PodFailurePolicyActionCount, ""
}

func matchExitCodes(pod *corev1.Pod, want *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if s.State.Terminated == nil || s.State.Terminated.ExitCode == 0 || (want.ContainerName != nil && *want.ContainerName != s.Name) {
				continue
			}
			if in := slices.Contains(want.Values, s.State.Terminated.ExitCode); in == (want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
				return s
			}
		}
	}
	return nil
}

func matchConditions(pod *corev1.Pod, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		for _, pattern := range patterns {
			if c := &pod.Status.Conditions[i]; c.Type == pattern.Type && c.Status == pattern.Status {
				return c
			}
		}
	}
	return nil
}

// bySuccessPolicy ends the Job when the indexes that a rule names, or enough of them, have succeeded.
func (a *attempt) bySuccessPolicy() *verdict {
	if a.job.Spec.SuccessPolicy == nil || !isIndexed(a.job) {
		return nil
	}
	for i, rule := range a.job.Spec.SuccessPolicy.Rules {
		reached := a.completed.count()
		needed := int(ptr.Deref(rule.SucceededCount, 0))
		if rule.SucceededIndexes != nil {
			named := parseIndexes(*rule.SucceededIndexes, completionsOf(a.job))
			reached = a.completed.common(named)
			if rule.SucceededCount == nil {
				needed = named.count()
			}
		}
		if needed > 0 && reached >= needed {
			return &verdict{true, batchv1.JobReasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", i)}
		}
	}
	return nil
}
