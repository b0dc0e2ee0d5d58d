package lifecycle

import (
	"slices"

	"github.com/bayplan/bayplan/internal/qos"
	v1 "k8s.io/api/core/v1"
)

// IsSidecar tells whether an init container is a sidecar: one that keeps running beside the ordinary containers (KEP-753).
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// restarts tells whether a container that ended with this exit code is started again. The container's own rules come first, then its
// own policy (KEP-5307), then the pod's.
func restarts(pod *v1.Pod, c *v1.Container, exitCode int32, init bool) bool {
	for _, rule := range c.RestartPolicyRules {
		if rule.Action == v1.ContainerRestartRuleActionRestart && rule.ExitCodes != nil && matches(rule.ExitCodes, exitCode) {
			return true
		}
	}
	policy := string(pod.Spec.RestartPolicy)
	if c.RestartPolicy != nil {
		policy = string(*c.RestartPolicy)
		if init && policy == string(v1.ContainerRestartPolicyAlways) {
			return true // a sidecar
		}
	}
	switch v1.RestartPolicy(policy) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return !init || exitCode != 0
	}
}

func matches(codes *v1.ContainerRestartRuleOnExitCodes, exitCode int32) bool {
	in := slices.Contains(codes.Values, exitCode)
	return in == (codes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn)
}

// QOSClass is the quality-of-service class of a pod. Only CPU and memory count; pod-level resources, when set, stand for the containers'.
func QOSClass(pod *v1.Pod) v1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return qos.Class(&pod.Spec)
}
