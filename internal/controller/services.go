package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServicePortOnPod is the number of the port on which a pod serves a port of a Service; false if the pod has no port of that name.
func ServicePortOnPod(pod *corev1.Pod, port *corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type == intstr.Int {
		if port.TargetPort.IntVal == 0 {
			return port.Port, true
		}
		return port.TargetPort.IntVal, true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.Name == port.TargetPort.StrVal && (p.Protocol == port.Protocol || p.Protocol == "" && port.Protocol == corev1.ProtocolTCP) {
					return p.ContainerPort, true
				}
			}
		}
	}
	return 0, false
}

// PodServes tells whether a pod can be an endpoint: it has an address and has not ended.
func PodServes(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && !IsPodFinished(pod)
}

// EndpointChange tells whether the change of a pod can change the endpoints of a Service.
func EndpointChange(old, pod *corev1.Pod) bool {
	if old.Status.PodIP != pod.Status.PodIP || len(old.Status.PodIPs) != len(pod.Status.PodIPs) || old.Spec.NodeName != pod.Spec.NodeName {
		return true
	}
	return IsPodReady(old) != IsPodReady(pod) || IsPodFinished(old) != IsPodFinished(pod) || (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil)
}

// PublishedHostname is the name under which DNS knows a pod of a headless Service.
func PublishedHostname(pod *corev1.Pod, service *corev1.Service) string {
	if pod.Spec.Subdomain == service.Name && pod.Namespace == service.Namespace {
		return pod.Spec.Hostname
	}
	return ""
}
