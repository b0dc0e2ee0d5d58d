package static

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsStatic tells whether a pod was read from a file.
func IsStatic(pod *v1.Pod) bool { return pod.Annotations[annotationSource] == "file" && !IsMirror(pod) }

// IsMirror tells whether an object of the API only shows a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, ok := pod.Annotations[v1.MirrorPodAnnotationKey]
	return ok
}

// Mirror is the object that shows the pod in the API. It belongs to the Node.
func Mirror(pod *v1.Pod, node *v1.Node) *v1.Pod {
	m := pod.DeepCopy()
	m.UID, m.ResourceVersion, m.Status = "", "", v1.PodStatus{}
	m.Annotations[v1.MirrorPodAnnotationKey] = pod.Annotations[annotationHash]
	controller := true
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controller}}
	return m
}

// Mirrors tells whether the object shows this very pod, and not one that the manifest once had.
func Mirrors(object, pod *v1.Pod) bool {
	return object.Annotations[v1.MirrorPodAnnotationKey] == pod.Annotations[annotationHash]
}
