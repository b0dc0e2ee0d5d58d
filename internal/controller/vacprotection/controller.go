// Package vacprotection keeps VolumeAttributesClasses, by a finalizer, while claims or volumes name them.
//
// Class events lead to a sync of the class, and so does every claim or volume that stops naming one.
package vacprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "volumeattributesclass-protection-controller"

// Finalizer is what keeps a class.
const Finalizer = "kubernetes.io/vac-protection"

// Controller protects classes.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	classes    storagelisters.VolumeAttributesClassLister
	claims     corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	protection controller.Protection[*storagev1.VolumeAttributesClass]
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, classes := deps.Informers.Core().V1(), deps.Informers.Storage().V1().VolumeAttributesClasses()
	c := &Controller{client: deps.Client, classes: classes.Lister(), claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister()}
	c.protection = controller.Protection[*storagev1.VolumeAttributesClass]{Finalizer: Finalizer, InUse: c.inUse, Update: c.update}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(classes.Informer(), controller.Handlers[*storagev1.VolumeAttributesClass]{
		Add: func(class *storagev1.VolumeAttributesClass) { c.AddObject(class) }, Update: func(_, class *storagev1.VolumeAttributesClass) { c.AddObject(class) },
	}); err != nil {
		return nil, err
	}
	if err := c.Handle(core.PersistentVolumeClaims().Informer(), controller.Handlers[*corev1.PersistentVolumeClaim]{
		Update: func(old, claim *corev1.PersistentVolumeClaim) { c.released(ofClaim(old), ofClaim(claim)) },
		Delete: func(claim *corev1.PersistentVolumeClaim) { c.released(ofClaim(claim), nil) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.PersistentVolumes().Informer(), controller.Handlers[*corev1.PersistentVolume]{
		Update: func(old, volume *corev1.PersistentVolume) { c.released(ofVolume(old), ofVolume(volume)) },
		Delete: func(volume *corev1.PersistentVolume) { c.released(ofVolume(volume), nil) },
	})
}

// ofClaim lists the classes that a claim has, wants or is being given.
func ofClaim(claim *corev1.PersistentVolumeClaim) []string {
	names := named(claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName)
	if modify := claim.Status.ModifyVolumeStatus; modify != nil {
		names = append(names, named(&modify.TargetVolumeAttributesClassName)...)
	}
	return names
}

func ofVolume(volume *corev1.PersistentVolume) []string {
	return named(volume.Spec.VolumeAttributesClassName)
}

func named(names ...*string) []string {
	var out []string
	for _, name := range names {
		if name != nil && *name != "" {
			out = append(out, *name)
		}
	}
	return out
}

// released looks again at the classes that were named and no longer are.
func (c *Controller) released(before, now []string) {
	for _, name := range before {
		if !slices.Contains(now, name) {
			c.Add(name)
		}
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	class, err := c.classes.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if err := c.protection.Sync(ctx, class); err != nil {
		return fmt.Errorf("protect VolumeAttributesClass %s: %w", name, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, class *storagev1.VolumeAttributesClass) error {
	_, err := c.client.StorageV1().VolumeAttributesClasses().Update(ctx, class, metav1.UpdateOptions{})
	return err
}

func (c *Controller) inUse(_ context.Context, class *storagev1.VolumeAttributesClass) (bool, error) {
	volumes, err := c.volumes.List(labels.Everything())
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(volumes, func(v *corev1.PersistentVolume) bool { return slices.Contains(ofVolume(v), class.Name) }) {
		return true, nil
	}
	claims, err := c.claims.List(labels.Everything())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return slices.Contains(ofClaim(claim), class.Name) }), nil
}
