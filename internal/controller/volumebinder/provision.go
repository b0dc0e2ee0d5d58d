package volumebinder

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storage "k8s.io/component-helpers/storage/volume"
)

// defaultClass marks the class of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// provision asks the class's provisioner for a volume, by an annotation: provisioners run elsewhere.
func (c *Controller) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := storage.GetPersistentVolumeClaimClass(claim)
	class, err := c.classes.Get(name)
	if apierrors.IsNotFound(err) {
		c.recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf("storageclass.storage.k8s.io %q not found", name))
		return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
	}
	if err != nil {
		return err
	}
	if class.Provisioner == noProvisioner {
		return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
	}
	if claim.Annotations[storage.AnnStorageProvisioner] != class.Provisioner {
		asked := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storage.AnnStorageProvisioner, class.Provisioner)
		metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storage.AnnBetaStorageProvisioner, class.Provisioner)
		if _, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, asked, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("ask provisioner %s for a volume for PersistentVolumeClaim %s/%s: %w", class.Provisioner, claim.Namespace, claim.Name, err)
		}
		return nil // the event of this write leads here again
	}
	c.recorder.Event(claim, corev1.EventTypeNormal, "ExternalProvisioning", fmt.Sprintf("Waiting for a volume to be created either by the external provisioner '%s' "+
		"or manually by the system administrator. If volume creation is delayed, please verify that "+
		"the provisioner is running and correctly registered.", class.Provisioner))
	return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
}

// setDefaultClass gives a claim that names no class, not even the empty one, the default class, which may have come later than the claim.
func (c *Controller) setDefaultClass(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if storage.PersistentVolumeClaimHasClass(claim) {
		return false, nil
	}
	classes, err := c.classes.List(labels.Everything())
	if err != nil {
		return false, err
	}
	classes = slices.DeleteFunc(classes, func(s *storagev1.StorageClass) bool { return s.Annotations[defaultClass] != "true" })
	if len(classes) == 0 {
		return false, nil
	}
	// The newest counts, and among those of one second the first by name.
	newest := slices.MinFunc(classes, func(a, b *storagev1.StorageClass) int {
		if order := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); order != 0 {
			return order
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	given := claim.DeepCopy()
	given.Spec.StorageClassName = &newest.Name
	if _, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, given, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("give PersistentVolumeClaim %s/%s the default class %s: %w", claim.Namespace, claim.Name, newest.Name, err)
	}
	return true, nil
}
