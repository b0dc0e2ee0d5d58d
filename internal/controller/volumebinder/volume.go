package volumebinder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/bayplan/bayplan/internal/controller"
)

func (c *Controller) syncVolume(ctx context.Context, name string) error {
	volume, err := c.volumes.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		// Unused, or kept by somebody for a claim that has not taken it yet.
		_, err := c.setVolumePhase(ctx, volume, corev1.VolumeAvailable)
		return err
	}
	claim, err := c.claimOf(ctx, ref)
	switch {
	case err != nil:
		return err
	case claim == nil:
		return c.release(ctx, volume)
	case claim.Spec.VolumeName == volume.Name:
		_, err := c.setVolumePhase(ctx, volume, corev1.VolumeBound)
		return err
	case claim.Spec.VolumeName != "":
		return c.unneeded(ctx, volume)
	case storage.CheckVolumeModeMismatches(&claim.Spec, &volume.Spec):
		c.recorder.Event(volume, corev1.EventTypeWarning, "VolumeMismatch",
			fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", claim.Name))
		c.recorder.Event(claim, corev1.EventTypeWarning, "VolumeMismatch",
			fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", volume.Name))
		return nil
	}
	c.claimLoop.Add(claim.Namespace + "/" + claim.Name)
	return nil
}

// claimOf finds the claim that a volume names; nil when it is gone. A volume whose claim is gone may be deleted, so that a cache that is behind is no
// proof: the API server is asked.
func (c *Controller) claimOf(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	claim, err := c.claims.PersistentVolumeClaims(ref.Namespace).Get(ref.Name)
	if err == nil && claim.UID == ref.UID {
		return claim, nil
	}
	claim, err = c.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID {
		return nil, nil
	}
	return claim, err
}

// release says that the volume's claim is gone. Who provisioned the volume deletes it if its reclaim policy says so; otherwise it stays as it is.
func (c *Controller) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Status.Phase != corev1.VolumeFailed {
		var err error
		if volume, err = c.setVolumePhase(ctx, volume, corev1.VolumeReleased); err != nil {
			return err
		}
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		return c.fail(ctx, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && volume.Annotations[storage.AnnDynamicallyProvisioned] == "" && volume.Spec.CSI == nil {
		return c.fail(ctx, volume, "VolumeFailedDelete", "error getting deleter volume plugin for volume \""+volume.Name+"\": no volume plugin matched")
	}
	return nil
}

func (c *Controller) fail(ctx context.Context, volume *corev1.PersistentVolume, reason, message string) error {
	if volume.Status.Phase == corev1.VolumeFailed {
		return nil
	}
	next := volume.DeepCopy()
	next.Status.Phase, next.Status.Message = corev1.VolumeFailed, message
	if _, err := c.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the phase Failed of PersistentVolume %s: %w", volume.Name, err)
	}
	c.recorder.Event(volume, corev1.EventTypeWarning, reason, message)
	return nil
}

// unneeded gives up a volume whose claim has got another one.
func (c *Controller) unneeded(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[storage.AnnDynamicallyProvisioned] != "" && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return c.release(ctx, volume)
	}
	free := volume.DeepCopy()
	if free.Annotations[storage.AnnBoundByController] != "" {
		delete(free.Annotations, storage.AnnBoundByController)
		free.Spec.ClaimRef = nil
	} else {
		free.Spec.ClaimRef.UID = "" // somebody wants this volume for a claim of this name
	}
	if _, err := c.client.CoreV1().PersistentVolumes().Update(ctx, free, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("free PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}
