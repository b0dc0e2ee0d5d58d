package storage

import (
	"fmt"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The annotations by which the volume controller and the scheduler work together.
const (
	annBindCompleted     = "pv.kubernetes.io/bind-completed"
	annBoundByController = "pv.kubernetes.io/bound-by-controller"
	annSelectedNode      = "volume.kubernetes.io/selected-node"
)

// ReasonImmediate refuses pods whose claims the volume controller has still to bind.
const ReasonImmediate = "pod has unbound immediate PersistentVolumeClaims"

// NotFound tells that there is no claim of the name, in the words of an API server.
func NotFound(claim string) string { return fmt.Sprintf("persistentvolumeclaim %q not found", claim) }

// Refusal tells why a pod with these claims can go to no node at all as things are; empty if nodes have to be looked at.
func (s *State) Refusal(namespace string, list []shape.Claim) string {
	for i := range list {
		if why := s.refusal(namespace, &list[i]); why != "" {
			return why
		}
	}
	for i := range list {
		claim := s.Claim(namespace, list[i].Name)
		if bound(claim) {
			continue
		}
		delayed, why := s.delayed(claim)
		if why != "" {
			return why
		}
		if !delayed || claim.Spec.VolumeName != "" {
			return ReasonImmediate
		}
	}
	return ""
}

func (s *State) refusal(namespace string, c *shape.Claim) string {
	claim := s.Claim(namespace, c.Name)
	switch {
	case claim == nil && c.Pod != "":
		return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", c.Name)
	case claim == nil:
		return NotFound(c.Name)
	case claim.Status.Phase == v1.ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", c.Name, claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", c.Name)
	case c.Pod != "" && !controls(c.UID, claim):
		return fmt.Sprintf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", namespace, c.Name, namespace, c.Pod)
	}
	return ""
}

// controls reports whether the pod of the UID is the claim's controller.
func controls(uid types.UID, claim *v1.PersistentVolumeClaim) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && owner.UID == uid
}

// bound reports whether the volume controller has bound a claim for good.
func bound(claim *v1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, annBindCompleted)
}

// delayed reports whether a claim is to be bound only once a pod that uses it has a node; why tells that it cannot be known.
func (s *State) delayed(claim *v1.PersistentVolumeClaim) (delayed bool, why string) {
	name := ClassOf(claim)
	class := s.classes[name]
	if name == "" || class == nil {
		return false, ""
	}
	if class.VolumeBindingMode == nil {
		return false, fmt.Sprintf("VolumeBindingMode not set for StorageClass %q", name)
	}
	return *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, ""
}

// Class returns a storage class, nil if there is none.
func (s *State) Class(name string) *storagev1.StorageClass { return s.classes[name] }

// ClassOf returns the name of a claim's storage class. The annotation is older than the field and goes before it.
func ClassOf(claim *v1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

func classOfVolume(volume *v1.PersistentVolume) string {
	if class, ok := volume.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return volume.Spec.StorageClassName
}
