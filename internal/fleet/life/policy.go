package life

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// isSidecar tells whether an init container keeps running beside the ordinary ones (KEP-753).
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// restarts tells whether a container that ended with this code runs again: by its own rules, its own policy (KEP-5307), or the pod's.
func restarts(spec *corev1.PodSpec, c *corev1.Container, k kind, code int32) bool {
	if k == kindSidecar {
		return true
	}
	for _, rule := range c.RestartPolicyRules {
		if rule.Action != corev1.ContainerRestartRuleActionRestart || rule.ExitCodes == nil {
			continue
		}
		wantIn := rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn
		if slices.Contains(rule.ExitCodes.Values, code) == wantIn {
			return true
		}
	}
	policy := spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return k == kindOrdinary || code != 0
}
