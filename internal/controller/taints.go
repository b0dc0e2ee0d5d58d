package controller

import (
	corev1 "k8s.io/api/core/v1"
)

// Tolerates tells whether a toleration covers a taint. An empty effect covers all effects; the operator Exists without a key covers all
// taints; an empty operator means Equal.
func Tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
