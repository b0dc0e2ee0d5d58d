// Package qos holds the rule that gives a pod its quality-of-service class, which API server, node agent and eviction must agree on.
package qos

import (
	corev1 "k8s.io/api/core/v1"
)

// Class returns Guaranteed when every container has a limit for CPU and memory equal to its request, BestEffort when no container names either, and
// Burstable otherwise. Requests and limits of the pod as a whole, where given, count instead of those of its containers.
func Class(spec *corev1.PodSpec) corev1.PodQOSClass {
	if r := spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return classOf([]corev1.ResourceRequirements{*r})
	}
	var all []corev1.ResourceRequirements
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			all = append(all, containers[i].Resources)
		}
	}
	return classOf(all)
}

func classOf(all []corev1.ResourceRequirements) corev1.PodQOSClass {
	guaranteed, bestEffort := true, true
	for _, r := range all {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			bestEffort = bestEffort && limit.Sign() <= 0 && request.Sign() <= 0
			// A limit without a request means a request of the same size; a request of zero is one.
			_, requested := r.Requests[name]
			guaranteed = guaranteed && limit.Sign() > 0 && (!requested || request.Cmp(limit) == 0)
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
