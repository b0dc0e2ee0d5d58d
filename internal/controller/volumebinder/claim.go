package volumebinder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/bayplan/bayplan/internal/controller"
)

// noProvisioner is the provisioner of classes whose volumes people make.
const noProvisioner = "kubernetes.io/no-provisioner"

func (c *Controller) syncClaim(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	switch {
	case claim.Annotations[storage.AnnBindCompleted] != "":
		return c.syncBound(ctx, claim)
	case claim.DeletionTimestamp != nil:
		return nil
	case claim.Spec.VolumeName != "":
		return c.bindNamed(ctx, claim)
	}
	return c.findVolume(ctx, claim)
}

// syncBound keeps a binding that was made, or says that it is lost, which is for good.
func (c *Controller) syncBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return c.lost(ctx, claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	}
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		// A provisioner or the scheduler may just have made it: only the API server knows.
		volume, err = c.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return c.lost(ctx, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case err != nil:
		return err
	case volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == claim.UID:
		return c.bind(ctx, volume, claim)
	}
	return c.lost(ctx, claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

func (c *Controller) lost(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason, message string) error {
	if claim.Status.Phase == corev1.ClaimLost {
		return nil
	}
	if err := c.setClaimStatus(ctx, claim, corev1.ClaimLost, nil); err != nil {
		return err
	}
	c.recorder.Event(claim, corev1.EventTypeWarning, reason, message)
	return nil
}

// bindNamed gives a claim the volume that it asks for by name.
func (c *Controller) bindNamed(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	switch {
	case apierrors.IsNotFound(err):
		return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
	case err != nil:
		return err
	case volume.Spec.ClaimRef == nil:
		if why := unfit(volume, claim); why != nil {
			c.recorder.Event(claim, corev1.EventTypeWarning, "VolumeMismatch", fmt.Sprintf("Cannot bind to requested volume %q: %s", volume.Name, why))
			return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
		}
		return c.bind(ctx, volume, claim)
	case storage.IsVolumeBoundToClaim(volume, claim):
		return c.bind(ctx, volume, claim)
	}
	c.recorder.Event(claim, corev1.EventTypeWarning, "FailedBinding", fmt.Sprintf("volume %q already bound to a different claim.", volume.Name))
	return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
}

// findVolume looks for the smallest volume that fits, and without one for somebody who makes it.
func (c *Controller) findVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	delayed, err := storage.IsDelayBindingMode(claim, c.classes)
	if err != nil {
		return fmt.Errorf("PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	volume, err := c.match(claim, delayed)
	if err != nil {
		return fmt.Errorf("find a volume for PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if volume != nil {
		return c.bind(ctx, volume, claim)
	}
	if set, err := c.setDefaultClass(ctx, claim); set || err != nil {
		return err
	}
	switch {
	case delayed && !storage.IsDelayBindingProvisioning(claim):
		reason, message := c.awaited(claim)
		c.recorder.Event(claim, corev1.EventTypeNormal, reason, message)
	case storage.GetPersistentVolumeClaimClass(claim) != "":
		return c.provision(ctx, claim)
	default:
		c.recorder.Event(claim, corev1.EventTypeNormal, "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
	}
	return c.setClaimStatus(ctx, claim, corev1.ClaimPending, nil)
}

// match finds the volume that a claim gets: one that names it, or else the smallest that fits. When the scheduler chooses, only the former.
func (c *Controller) match(claim *corev1.PersistentVolumeClaim, delayed bool) (*corev1.PersistentVolume, error) {
	all, err := c.volumes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	// The library's matching leaves access modes to its caller. The order of the names makes the choice among equals repeatable.
	fitting := slices.DeleteFunc(all, func(v *corev1.PersistentVolume) bool { return !storage.CheckAccessModes(claim, v) })
	slices.SortFunc(fitting, func(a, b *corev1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	return storage.FindMatchingVolume(claim, fitting, nil, nil, delayed, true)
}

// awaited tells what a claim whose volume is chosen with its pod waits for.
func (c *Controller) awaited(claim *corev1.PersistentVolumeClaim) (reason, message string) {
	var names []string
	for _, pod := range controller.PodsOfClaim(c.podIndex, claim.Namespace, claim.Name) {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
	case 1:
		return "WaitForPodScheduled", fmt.Sprintf("waiting for pod %s to be scheduled", names[0])
	}
	return "WaitForPodScheduled", fmt.Sprintf("waiting for pods %s to be scheduled", strings.Join(names, ","))
}
