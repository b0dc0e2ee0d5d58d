// Package attachdetach keeps the VolumeAttachments by which CSI drivers attach volumes to nodes and detach them.
//
// Events of pods, claims, volumes, drivers, attachments and nodes lead to a sync of the node that they are about. A sync works out which volumes the node's pods
// need (want.go), makes the attachments that are missing, writes the attached ones into the Node's status, where the node reads them, and deletes those that
// nobody needs and that the node does not use any more (detach.go). Without CSI volumes there is nothing to do.
package attachdetach

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "persistentvolume-attach-detach-controller"

// Indexes of attachments.
const (
	byNode   = "bayplan.attachmentNode"
	byVolume = "bayplan.attachmentVolume"
)

// Controller keeps attachments.
type Controller struct {
	*controller.Loop
	client       kubernetes.Interface
	clock        clock.PassiveClock
	recorder     record.EventRecorder
	expectations *controller.Expectations
	leaving      *leaving

	podIndex    cache.Indexer
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	nodes       corelisters.NodeLister
	drivers     storagelisters.CSIDriverLister
	attachments cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, storage := deps.Informers.Core().V1(), deps.Informers.Storage().V1()
	pods, attachments := core.Pods().Informer(), storage.VolumeAttachments().Informer()
	for _, index := range []error{controller.IndexByClaim(pods), controller.IndexByNode(pods), indexAttachments(attachments)} {
		if index != nil {
			return nil, index
		}
	}
	c := &Controller{
		client: deps.Client, clock: deps.Clock, recorder: deps.Recorder("attachdetach-controller"),
		expectations: controller.NewExpectations(deps.Clock), leaving: newLeaving(),
		podIndex: pods.GetIndexer(), claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		nodes: core.Nodes().Lister(), drivers: storage.CSIDrivers().Lister(), attachments: attachments.GetIndexer(),
	}
	// Two nodes must not take the same volume at the same time.
	deps.Workers = 1
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:                                     controller.Handlers[*corev1.Pod]{Add: c.podChanged, Update: c.podUpdated, Delete: c.podChanged},
		attachments:                              controller.Handlers[*storagev1.VolumeAttachment]{Add: c.attachmentChanged, Update: func(_, a *storagev1.VolumeAttachment) { c.attachmentChanged(a) }, Delete: c.attachmentGone},
		core.PersistentVolumeClaims().Informer(): controller.OnAny(func(claim *corev1.PersistentVolumeClaim) { c.claimChanged(claim.Namespace, claim.Name) }),
		core.PersistentVolumes().Informer():      controller.OnAny(c.volumeChanged),
		core.Nodes().Informer():                  controller.Handlers[*corev1.Node]{Add: func(n *corev1.Node) { c.Add(n.Name) }, Update: c.nodeUpdated, Delete: func(n *corev1.Node) { c.Add(n.Name) }},
		storage.CSIDrivers().Informer():          controller.OnAny(func(*storagev1.CSIDriver) { c.allNodes() }),
	} {
		if err := c.Handle(informer, handler); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func indexAttachments(informer cache.SharedIndexInformer) error {
	if _, found := informer.GetIndexer().GetIndexers()[byNode]; found {
		return nil
	}
	index := func(key func(*storagev1.VolumeAttachment) string) cache.IndexFunc {
		return func(obj any) ([]string, error) {
			if a, ok := obj.(*storagev1.VolumeAttachment); ok {
				return []string{key(a)}, nil
			}
			return nil, nil
		}
	}
	return informer.AddIndexers(cache.Indexers{
		byNode: index(func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }), byVolume: index(volumeOf),
	})
}

func (c *Controller) podChanged(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" && len(controller.ClaimNames(pod)) > 0 {
		c.Add(pod.Spec.NodeName)
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.Spec.NodeName != pod.Spec.NodeName || controller.IsPodFinished(old) != controller.IsPodFinished(pod) {
		c.podChanged(pod)
	}
}

func (c *Controller) claimChanged(namespace, name string) {
	for _, pod := range controller.PodsOfClaim(c.podIndex, namespace, name) {
		c.podChanged(pod)
	}
}

func (c *Controller) volumeChanged(volume *corev1.PersistentVolume) {
	if ref := volume.Spec.ClaimRef; volume.Spec.CSI != nil && ref != nil {
		c.claimChanged(ref.Namespace, ref.Name)
	}
}

func (c *Controller) attachmentChanged(a *storagev1.VolumeAttachment) {
	c.expectations.ObservedAdd(volumeOf(a), a.UID)
	c.Add(a.Spec.NodeName)
}

// attachmentGone wakes the node, and others that wait for the volume.
func (c *Controller) attachmentGone(a *storagev1.VolumeAttachment) {
	c.expectations.ObservedGone(volumeOf(a), a.UID)
	c.leaving.forget(a.UID)
	c.Add(a.Spec.NodeName)
	if volume, err := c.volumes.Get(volumeOf(a)); err == nil {
		c.volumeChanged(volume)
	}
}

func (c *Controller) nodeUpdated(old, node *corev1.Node) {
	same := equality.Semantic.DeepEqual(old.Status.VolumesInUse, node.Status.VolumesInUse) && equality.Semantic.DeepEqual(old.Status.VolumesAttached, node.Status.VolumesAttached) &&
		isReady(old) == isReady(node) && isOut(old) == isOut(node)
	if !same {
		c.Add(node.Name)
	}
}

func (c *Controller) allNodes() {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	for _, node := range nodes {
		c.Add(node.Name)
	}
}
