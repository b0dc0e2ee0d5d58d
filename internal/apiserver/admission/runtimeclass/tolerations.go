package runtimeclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// mergeTolerations returns the tolerations of both lists, in their order, without those that another one covers. Of equal ones the first stays.
func mergeTolerations(pod, class []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(pod, class)
	var merged []corev1.Toleration
	for i, t := range all {
		covered := slices.ContainsFunc(merged, func(other corev1.Toleration) bool { return covers(other, t) }) ||
			slices.ContainsFunc(all[i+1:], func(other corev1.Toleration) bool { return !equal(other, t) && covers(other, t) })
		if !covered {
			merged = append(merged, t)
		}
	}
	return merged
}

func equal(a, b corev1.Toleration) bool { return apiequality.Semantic.DeepEqual(a, b) }

// covers tells whether wide tolerates every taint that narrow does, for as long.
func covers(wide, narrow corev1.Toleration) bool {
	if equal(wide, narrow) {
		return true
	}
	anyKey := wide.Key == "" && wide.Operator == corev1.TolerationOpExists
	anyEffect := wide.Effect == ""
	if (wide.Key != narrow.Key && !anyKey) || (wide.Effect != narrow.Effect && !anyEffect) || !lastsAsLong(wide, narrow) {
		return false
	}
	switch wide.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return narrow.Operator == corev1.TolerationOpEqual && narrow.Value == wide.Value
	}
	return false
}

// lastsAsLong: without seconds a toleration lasts for ever; seconds mean something for NoExecute only.
func lastsAsLong(wide, narrow corev1.Toleration) bool {
	if wide.Effect != corev1.TaintEffectNoExecute || wide.TolerationSeconds == nil {
		return true
	}
	return narrow.TolerationSeconds != nil && *narrow.TolerationSeconds <= *wide.TolerationSeconds
}
