package lifecycle

import (
	"slices"

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
	var sets []v1.ResourceRequirements
	if pod.Spec.Resources != nil {
		sets = append(sets, *pod.Spec.Resources)
	} else {
		for i := range pod.Spec.InitContainers {
			sets = append(sets, pod.Spec.InitContainers[i].Resources)
		}
		for i := range pod.Spec.Containers {
			sets = append(sets, pod.Spec.Containers[i].Resources)
		}
	}
	anything, guaranteed := false, true
	for _, r := range sets {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			if !limit.IsZero() || !request.IsZero() {
				anything = true
			}
			// A limit without a request means a request of the same size, which the API server fills in.
			if _, set := r.Requests[name]; !set {
				request = limit
			}
			if limit.IsZero() || limit.Cmp(request) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !anything:
		return v1.PodQOSBestEffort
	case guaranteed:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}
