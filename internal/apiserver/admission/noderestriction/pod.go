package noderestriction

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

func (w write) pod(ctx context.Context) error {
	switch w.GetSubresource() {
	case "":
		return w.wholePod(ctx)
	case "status":
		return w.podStatus()
	case "eviction":
		return w.eviction(ctx)
	}
	return w.refuse("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", w.GetSubresource())
}

func (w write) wholePod(ctx context.Context) error {
	switch w.GetOperation() {
	case admission.Create:
		return w.mirrorPod(ctx)
	case admission.Delete:
		pod, err := w.current(ctx, w.GetName())
		if err == nil && pod.Spec.NodeName != w.node {
			return w.refuse("node %q can only delete pods with spec.nodeName set to itself", w.node)
		}
		return err
	}
	return w.refuse("unexpected operation %q, node %q can only create and delete mirror pods", w.GetOperation(), w.node)
}

// mirrorPod: a pod of a node's own may stand in the API, belongs to its Node, and gives the node a way to nothing else.
func (w write) mirrorPod(ctx context.Context) error {
	pod, ok := w.GetObject().(*corev1.Pod)
	switch {
	case !ok:
		return w.refuse("unexpected type %T", w.GetObject())
	case !has(pod.Annotations, corev1.MirrorPodAnnotationKey):
		return w.refuse("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, w.node)
	case pod.Spec.NodeName != w.node:
		return w.refuse("node %q can only create pods with spec.nodeName set to itself", w.node)
	case len(pod.OwnerReferences) > 1:
		return w.refuse("node %q can only create pods with a single owner reference set to itself", w.node)
	case len(pod.OwnerReferences) == 0:
		return w.refuse("node %q can only create pods with an owner reference set to itself", w.node)
	}
	if err := w.ownedByNode(ctx, &pod.OwnerReferences[0]); err != nil {
		return err
	}
	if what := refersTo(&pod.Spec); what != "" {
		return w.refuse("node %q can not create pods that reference %s", w.node, what)
	}
	return nil
}

func (w write) ownedByNode(ctx context.Context, owner *metav1.OwnerReference) error {
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != w.node:
		return w.refuse("node %q can only create pods with an owner reference set to itself", w.node)
	case owner.Controller == nil || !*owner.Controller:
		return w.refuse("node %q can only create pods with a controller owner reference set to itself", w.node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return w.refuse("node %q must not set blockOwnerDeletion on an owner reference", w.node)
	}
	uid, err := w.uid(ctx)
	if err == nil && owner.UID != uid {
		return w.refuse("node %s UID mismatch: expected %s got %s", w.node, owner.UID, uid)
	}
	return err
}

func (w write) podStatus() error {
	if w.GetOperation() != admission.Update {
		return w.unexpected()
	}
	old, ok := w.GetOldObject().(*corev1.Pod)
	if !ok {
		return w.refuse("unexpected type %T", w.GetOldObject())
	}
	pod, ok := w.GetObject().(*corev1.Pod)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	same := equality.Semantic.DeepEqual
	switch {
	case old.Spec.NodeName != w.node:
		return w.refuse("node %q can only update pod status for pods with spec.nodeName set to itself", w.node)
	case !maps.Equal(old.Labels, pod.Labels):
		return w.refuse("node %q cannot update labels through pod status", w.node)
	case !same(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
		return w.refuse("node %q cannot update resource claim statues", w.node)
	case !same(old.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return w.refuse("node %q cannot update extended resource claim status", w.node)
	case !same(old.Status.NodeAllocatableResourceClaimStatuses, pod.Status.NodeAllocatableResourceClaimStatuses):
		return w.refuse("node %q cannot update node allocatable resource claim statuses", w.node)
	}
	return nil
}

func (w write) eviction(ctx context.Context) error {
	if w.GetOperation() != admission.Create {
		return w.unexpected()
	}
	eviction, ok := w.GetObject().(*policyv1.Eviction)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	name := w.GetName()
	if name == "" {
		name = eviction.Name
	}
	if name == "" {
		return w.refuse("could not determine pod from request data")
	}
	pod, err := w.current(ctx, name)
	if err == nil && pod.Spec.NodeName != w.node {
		return w.refuse("node %s can only evict pods with spec.nodeName set to itself", w.node)
	}
	return err
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
