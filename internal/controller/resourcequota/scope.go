package resourcequota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// scoped tells whether the quota limits only some of the pods. Such a quota counts nothing else.
func scoped(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
}

// podInScope tells whether the quota counts the pod: all of its scopes must fit.
func podInScope(q *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range q.Spec.Scopes {
		if !fits(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true
	}
	for _, requirement := range q.Spec.ScopeSelector.MatchExpressions {
		if !fits(requirement, pod) {
			return false
		}
	}
	return true
}

func fits(r corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		named := pod.Spec.PriorityClassName != ""
		switch r.Operator {
		case corev1.ScopeSelectorOpExists:
			return named
		case corev1.ScopeSelectorOpDoesNotExist:
			return !named
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(r.Values, pod.Spec.PriorityClassName)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(r.Values, pod.Spec.PriorityClassName)
		}
	}
	return false
}

// bestEffort tells whether no container asks for or is limited in CPU or memory.
func bestEffort(pod *corev1.Pod) bool {
	for _, list := range []corev1.ResourceList{
		resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}),
	} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if amount := list[name]; !amount.IsZero() {
				return false
			}
		}
	}
	return true
}

// crossesNamespaces tells whether an affinity of the pod looks at pods of other namespaces.
func crossesNamespaces(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	weighted := func(list []corev1.WeightedPodAffinityTerm) {
		for _, w := range list {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
