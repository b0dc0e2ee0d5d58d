package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCondition returns the pod's condition of a type, or nil.
func PodCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// IsPodReady tells whether the pod can serve.
func IsPodReady(pod *corev1.Pod) bool {
	c := PodCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsPodFinished tells whether all containers of the pod have ended for good.
func IsPodFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsPodActive tells whether the pod runs or will run: it is neither finished nor being deleted.
func IsPodActive(pod *corev1.Pod) bool {
	return !IsPodFinished(pod) && pod.DeletionTimestamp == nil
}

// IsPodTerminating tells whether the pod is being deleted and has not ended yet.
func IsPodTerminating(pod *corev1.Pod) bool {
	return !IsPodFinished(pod) && pod.DeletionTimestamp != nil
}

// ActivePods returns the pods that run or will run.
func ActivePods(pods []*corev1.Pod) []*corev1.Pod {
	active := make([]*corev1.Pod, 0, len(pods))
	for _, pod := range pods {
		if IsPodActive(pod) {
			active = append(active, pod)
		}
	}
	return active
}

// PodAvailableIn tells how long a ready pod must stay ready until it counts as available: 0 if it does already, and
// false if the pod is not ready at all.
func PodAvailableIn(pod *corev1.Pod, minReadySeconds int32, now time.Time) (time.Duration, bool) {
	c := PodCondition(pod, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return 0, false
	}
	if minReadySeconds == 0 {
		return 0, true
	}
	if c.LastTransitionTime.IsZero() {
		return time.Duration(minReadySeconds) * time.Second, true
	}
	return max(0, c.LastTransitionTime.Add(time.Duration(minReadySeconds)*time.Second).Sub(now)), true
}

// IsPodAvailable tells whether the pod has been ready for at least minReadySeconds.
func IsPodAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	left, ready := PodAvailableIn(pod, minReadySeconds, now)
	return ready && left == 0
}

// PodRestarts is the largest number of restarts among the pod's containers, sidecars included.
func PodRestarts(pod *corev1.Pod) (ordinary, sidecar int32) {
	for i := range pod.Status.ContainerStatuses {
		ordinary = max(ordinary, pod.Status.ContainerStatuses[i].RestartCount)
	}
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecars[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; sidecars[s.Name] {
			sidecar = max(sidecar, s.RestartCount)
		}
	}
	return ordinary, sidecar
}
