// Package volumeexpand notices claims that ask for more than they have. Only a storage driver can enlarge a volume, and its own controller watches claims for
// that; this one tells people what the claim waits for.
//
// Claim events lead to a sync of a claim that grew, which records an event.
package volumeexpand

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "persistentvolume-expander-controller"

// Controller looks for claims that grow.
type Controller struct {
	*controller.Loop
	recorder record.EventRecorder
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	c := &Controller{recorder: deps.Recorder("volume_expand"), claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.Reads(core.PersistentVolumes().Informer())
	return c, c.Handle(core.PersistentVolumeClaims().Informer(), controller.Handlers[*corev1.PersistentVolumeClaim]{
		Add: func(claim *corev1.PersistentVolumeClaim) {
			if growing(claim) {
				c.AddObject(claim)
			}
		},
		Update: func(old, claim *corev1.PersistentVolumeClaim) {
			if growing(claim) && (!growing(old) || requested(old).Cmp(*requested(claim)) != 0) {
				c.AddObject(claim)
			}
		},
	})
}

// growing tells whether a bound claim asks for more than it has.
func growing(claim *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && requested(claim).Cmp(has) > 0
}

func requested(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

func (c *Controller) sync(_ context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ref := volume.Spec.ClaimRef; !growing(claim) || ref == nil || ref.UID != claim.UID {
		return nil
	}
	c.recorder.Event(claim, corev1.EventTypeNormal, "ExternalExpanding", "waiting for an external controller to expand this PVC")
	return nil
}
