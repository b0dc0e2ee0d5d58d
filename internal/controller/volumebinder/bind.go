package volumebinder

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// bind makes what is missing of the binding. Each write may fail; the next sync goes on from there.
func (c *Controller) bind(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	volume, err := c.bindVolume(ctx, volume, claim)
	if err != nil {
		return fmt.Errorf("bind PersistentVolume to PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if volume, err = c.setVolumePhase(ctx, volume, corev1.VolumeBound); err != nil {
		return err
	}
	if claim, err = c.bindClaim(ctx, claim, volume); err != nil {
		return fmt.Errorf("bind PersistentVolumeClaim to PersistentVolume %s: %w", volume.Name, err)
	}
	return c.setClaimStatus(ctx, claim, corev1.ClaimBound, volume)
}

func (c *Controller) bindVolume(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	bound, changed, err := storage.GetBindVolumeToClaim(volume, claim)
	if err != nil || !changed {
		return volume, err
	}
	return c.client.CoreV1().PersistentVolumes().Update(ctx, bound, metav1.UpdateOptions{})
}

func (c *Controller) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	bound := claim.DeepCopy()
	if bound.Spec.VolumeName != volume.Name {
		bound.Spec.VolumeName = volume.Name
		metav1.SetMetaDataAnnotation(&bound.ObjectMeta, storage.AnnBoundByController, "yes")
	}
	if bound.Annotations[storage.AnnBindCompleted] == "" {
		metav1.SetMetaDataAnnotation(&bound.ObjectMeta, storage.AnnBindCompleted, "yes")
	}
	if bound.Spec.VolumeName == claim.Spec.VolumeName && maps.Equal(bound.Annotations, claim.Annotations) {
		return claim, nil
	}
	return c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, bound, metav1.UpdateOptions{})
}

// setClaimStatus writes the phase and, of a claim that is bound, what the volume gives.
func (c *Controller) setClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase, volume *corev1.PersistentVolume) error {
	next := claim.DeepCopy()
	next.Status.Phase = phase
	switch {
	case volume == nil:
		next.Status.AccessModes, next.Status.Capacity, next.Status.CurrentVolumeAttributesClassName = nil, nil, nil
	default:
		next.Status.AccessModes = volume.Spec.AccessModes
		// The capacity of a bound claim grows when its file system has, and that is for others to say.
		if size, found := volume.Spec.Capacity[corev1.ResourceStorage]; found && claim.Status.Phase != corev1.ClaimBound {
			if next.Status.Capacity == nil {
				next.Status.Capacity = corev1.ResourceList{}
			}
			next.Status.Capacity[corev1.ResourceStorage] = size
			next.Status.CurrentVolumeAttributesClassName = volume.Spec.VolumeAttributesClassName
		}
	}
	if equality.Semantic.DeepEqual(next.Status, claim.Status) {
		return nil
	}
	if _, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func (c *Controller) setVolumePhase(ctx context.Context, volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) (*corev1.PersistentVolume, error) {
	if volume.Status.Phase == phase {
		return volume, nil
	}
	next := volume.DeepCopy()
	next.Status.Phase, next.Status.Message = phase, ""
	written, err := c.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the phase %s of PersistentVolume %s: %w", phase, volume.Name, err)
	}
	return written, nil
}

// unfit tells why a claim cannot have the volume that it names; nil when it can.
func unfit(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	has, wants := volume.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case volume.DeletionTimestamp != nil:
		return fmt.Errorf("the volume is marked for deletion %q", volume.Name)
	case has.Cmp(wants) < 0:
		return errors.New("requested PV is too small")
	case storage.GetPersistentVolumeClass(volume) != storage.GetPersistentVolumeClaimClass(claim):
		return errors.New("storageClassName does not match")
	case ptr.Deref(volume.Spec.VolumeAttributesClassName, "") != ptr.Deref(claim.Spec.VolumeAttributesClassName, ""):
		return errors.New("volumeAttributesClassName does not match")
	case storage.CheckVolumeModeMismatches(&claim.Spec, &volume.Spec):
		return errors.New("incompatible volumeMode")
	case !storage.CheckAccessModes(claim, volume):
		return errors.New("incompatible accessMode")
	}
	return nil
}
