package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// podsByNode is the index of the pod informer by which a node's pods are found, and the field by which objects say on which node they are.
const podsByNode = "spec.nodeName"

// object is what a node wants to have to do with.
type object struct{ resource, namespace, name string }

// leadsTo reports whether there is a path from the node to the object.
func (n *Authorizer) leadsTo(ctx context.Context, node string, o object) bool {
	switch o.resource {
	case "persistentvolumes":
		return n.leadsToVolume(ctx, node, o.name)
	case "volumeattachments":
		a, err := n.client.StorageV1().VolumeAttachments().Get(ctx, o.name, metav1.GetOptions{})
		return err == nil && a.Spec.NodeName == node
	case "resourceslices":
		s, err := n.client.ResourceV1().ResourceSlices().Get(ctx, o.name, metav1.GetOptions{})
		return err == nil && s.Spec.NodeName != nil && *s.Spec.NodeName == node
	case "podcertificaterequests":
		r, err := n.client.CertificatesV1().PodCertificateRequests(o.namespace).Get(ctx, o.name, metav1.GetOptions{})
		return err == nil && string(r.Spec.NodeName) == node
	}
	if n.anyPod(ctx, node, o.namespace, func(pod *corev1.Pod) bool { return refers(pod, o.resource, o.name) }) {
		return true
	}
	return o.resource == "secrets" && n.leadsToVolumeSecret(ctx, node, o)
}

// leadsToVolume: a volume belongs to the claim that it names.
func (n *Authorizer) leadsToVolume(ctx context.Context, node, name string) bool {
	volume, err := n.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || volume.Spec.ClaimRef == nil {
		return false
	}
	claim := volume.Spec.ClaimRef
	return n.anyPod(ctx, node, claim.Namespace, func(pod *corev1.Pod) bool { return refers(pod, "persistentvolumeclaims", claim.Name) })
}

// leadsToVolumeSecret looks at the volumes of all claims of the node's pods. The Secret may be in another namespace than they.
func (n *Authorizer) leadsToVolumeSecret(ctx context.Context, node string, o object) bool {
	return n.anyPod(ctx, node, metav1.NamespaceAll, func(pod *corev1.Pod) bool {
		for _, name := range claims(pod) {
			claim, err := n.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || claim.Spec.VolumeName == "" {
				continue
			}
			volume, err := n.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			if err == nil && volumeRefersToSecret(volume, o.namespace, o.name) {
				return true
			}
		}
		return false
	})
}

// pod returns the pod from the cache, if it is there and bound to the node, and otherwise from the API.
func (n *Authorizer) pod(ctx context.Context, node, namespace, name string) (*corev1.Pod, error) {
	obj, ok, err := n.pods.GetStore().GetByKey(namespace + "/" + name)
	if err == nil && ok && obj.(*corev1.Pod).Spec.NodeName == node {
		return obj.(*corev1.Pod), nil
	}
	return n.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// anyPod reports whether f is true of a pod on the node, in a namespace or in all.
func (n *Authorizer) anyPod(ctx context.Context, node, namespace string, f func(*corev1.Pod) bool) bool {
	cached, err := n.pods.GetIndexer().ByIndex(podsByNode, node)
	if err != nil {
		return false
	}
	for _, obj := range cached {
		if pod := obj.(*corev1.Pod); (namespace == "" || pod.Namespace == namespace) && f(pod) {
			return true
		}
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(podsByNode, node).String()}
	current, err := n.client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return false
	}
	for i := range current.Items {
		if pod := &current.Items[i]; pod.Spec.NodeName == node && f(pod) {
			return true
		}
	}
	return false
}
