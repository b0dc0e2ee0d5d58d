// Package volumebinder binds PersistentVolumeClaims and PersistentVolumes to each other, hands claims to provisioners, and says what becomes of a volume
// whose claim is gone.
//
// A binding is four writes: claimRef of the volume, its phase, volumeName of the claim, its phase. Any of them may be the last one that succeeded, and
// the scheduler and provisioners make the first one too. So claims (claim.go) and volumes (volume.go) are synced by one loop each, every sync looks at both
// sides, and whichever is behind is completed:
//
//	claim events ──► claims loop ──► syncClaim ──► bind (bind.go) ──► volume, claim
//	     │  ▲                            │ no volume: annotation for the provisioner, event
//	     ▼  │                            ▼
//	volume events ──► volumes loop ──► syncVolume ──► Available, Bound, Released
package volumebinder

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "persistentvolume-binder-controller"

// Controller binds claims and volumes.
type Controller struct {
	claimLoop, volumeLoop *controller.Loop

	client   kubernetes.Interface
	recorder record.EventRecorder
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	classes  storagelisters.StorageClassLister
	podIndex cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, classes := deps.Informers.Core().V1(), deps.Informers.Storage().V1().StorageClasses()
	if err := controller.IndexByClaim(core.Pods().Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder("persistentvolume-controller"),
		claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(), classes: classes.Lister(), podIndex: core.Pods().Informer().GetIndexer(),
	}
	// Two claims must not choose the same volume at the same time.
	deps.Workers = 1
	c.claimLoop, c.volumeLoop = controller.NewLoop("claims", deps, c.syncClaim), controller.NewLoop("volumes", deps, c.syncVolume)
	for _, loop := range []*controller.Loop{c.claimLoop, c.volumeLoop} {
		loop.Reads(core.Pods().Informer())
		loop.Reads(core.PersistentVolumeClaims().Informer())
		loop.Reads(core.PersistentVolumes().Informer())
		loop.Reads(classes.Informer())
	}
	if err := c.claimLoop.Handle(core.PersistentVolumeClaims().Informer(), controller.OnAny(c.claimChanged)); err != nil {
		return nil, err
	}
	if err := c.volumeLoop.Handle(core.PersistentVolumes().Informer(), controller.OnAny(c.volumeChanged)); err != nil {
		return nil, err
	}
	return c, c.claimLoop.Handle(classes.Informer(), controller.Handlers[*storagev1.StorageClass]{
		Add: func(*storagev1.StorageClass) { c.wakeUnbound() }, Update: func(_, _ *storagev1.StorageClass) { c.wakeUnbound() },
	})
}

// Name is the controller's name.
func (c *Controller) Name() string { return Name }

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { c.claimLoop.Run(ctx) })
	loops.Go(func() { c.volumeLoop.Run(ctx) })
	loops.Wait()
}

func (c *Controller) claimChanged(claim *corev1.PersistentVolumeClaim) {
	c.claimLoop.AddObject(claim)
	if claim.Spec.VolumeName != "" {
		c.volumeLoop.Add(claim.Spec.VolumeName)
	}
}

// volumeChanged wakes the claim that the volume names, or all that look for one.
func (c *Controller) volumeChanged(volume *corev1.PersistentVolume) {
	c.volumeLoop.AddObject(volume)
	if ref := volume.Spec.ClaimRef; ref != nil {
		c.claimLoop.Add(ref.Namespace + "/" + ref.Name)
		return
	}
	if volume.Status.Phase == corev1.VolumeAvailable {
		c.wakeUnbound()
	}
}

func (c *Controller) wakeUnbound() {
	claims, err := c.claims.List(labels.Everything())
	if err != nil {
		return
	}
	for _, claim := range claims {
		if claim.Annotations[storage.AnnBindCompleted] == "" {
			c.claimLoop.AddObject(claim)
		}
	}
}
