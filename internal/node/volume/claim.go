package volume

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimPath is the directory behind a claim: that of the bound PersistentVolume, which must be of the kind hostPath or local.
func (m *Manager) claimPath(ctx context.Context, pod *v1.Pod, vol *v1.Volume) (string, error) {
	name := pod.Name + "-" + vol.Name
	if vol.PersistentVolumeClaim != nil {
		name = vol.PersistentVolumeClaim.ClaimName
	}
	claim, err := m.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", notFound("persistentvolumeclaim", name, err)
	}
	if vol.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) {
		return "", fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, claim.Name, pod.Namespace, pod.Name)
	}
	if claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", fmt.Errorf("persistentvolumeclaim %q is not bound", name)
	}
	pv, err := m.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", notFound("persistentvolume", claim.Spec.VolumeName, err)
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return "", fmt.Errorf("persistentvolume %q is not bound to claim %q", pv.Name, name)
	}
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return s.HostPath.Path, checkHostPath(s.HostPath)
	case s.Local != nil:
		return s.Local.Path, checkHostPath(&v1.HostPathVolumeSource{Path: s.Local.Path, Type: new(v1.HostPathDirectory)})
	}
	return "", fmt.Errorf("persistentvolume %q is of a kind that this node does not support: it must be hostPath or local", pv.Name)
}
