package translate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// podTotals are a pod's requests and limits as the scheduler counts them: the larger of the ordinary containers and sidecars together
// and of each init container, plus overhead; pod-level resources take precedence.
func podTotals(pod *v1.Pod) (requests, limits v1.ResourceList) {
	return resource.PodRequests(pod, resource.PodResourcesOptions{}), resource.PodLimits(pod, resource.PodResourcesOptions{})
}

// allLimited tells whether every container has a limit for the resource, so that the sum is one for the pod.
func allLimited(pod *v1.Pod, name v1.ResourceName) bool {
	if pod.Spec.Resources != nil {
		if _, ok := pod.Spec.Resources.Limits[name]; ok {
			return true
		}
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if q := list[i].Resources.Limits[name]; q.IsZero() {
				return false
			}
		}
	}
	return true
}
