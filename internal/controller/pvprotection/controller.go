// Package pvprotection keeps PersistentVolumes, by a finalizer, while they are bound to a claim. Volume events lead to a sync of the volume.
package pvprotection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "persistentvolume-protection-controller"

// Finalizer is what keeps a volume.
const Finalizer = "kubernetes.io/pv-protection"

// Controller protects volumes.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	volumes    corelisters.PersistentVolumeLister
	protection controller.Protection[*corev1.PersistentVolume]
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	volumes := deps.Informers.Core().V1().PersistentVolumes()
	c := &Controller{client: deps.Client, volumes: volumes.Lister()}
	c.protection = controller.Protection[*corev1.PersistentVolume]{
		Finalizer: Finalizer,
		InUse: func(_ context.Context, volume *corev1.PersistentVolume) (bool, error) {
			return volume.Status.Phase == corev1.VolumeBound, nil
		},
		Update: func(ctx context.Context, volume *corev1.PersistentVolume) error {
			_, err := c.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
			return err
		},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	return c, c.Handle(volumes.Informer(), controller.Handlers[*corev1.PersistentVolume]{
		Add: func(volume *corev1.PersistentVolume) { c.AddObject(volume) }, Update: func(_, volume *corev1.PersistentVolume) { c.AddObject(volume) },
	})
}

func (c *Controller) sync(ctx context.Context, name string) error {
	volume, err := c.volumes.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if err := c.protection.Sync(ctx, volume); err != nil {
		return fmt.Errorf("protect PersistentVolume %s: %w", name, err)
	}
	return nil
}
