// Package statefulset gives a set of pods stable names, storage and order.
//
// A sync reads the set, its revisions and its pods from the caches and goes through the ordinals in order (type round): it makes what is missing, with
// its claims, and waits for each to be ready before the next (or not, with podManagementPolicy Parallel); then it removes what is beyond
// the size, from the highest ordinal down; then it replaces pods of earlier revisions, from the highest ordinal down to the partition.
// Names are fixed, so making a pod twice is impossible; removals are remembered until the cache shows them. See README.md for the rules.
package statefulset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs, metrics and events.
const Name = "statefulset-controller"

var gvk = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// Controller runs StatefulSets.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	recorder  record.EventRecorder
	clock     clock.PassiveClock
	removals  *controller.Expectations
	sets      appslisters.StatefulSetLister
	claims    corelisters.PersistentVolumeClaimLister
	podIndex  cache.Indexer
	revisions controller.Revisions
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, apps := deps.Informers.Core().V1(), deps.Informers.Apps().V1()
	for _, informer := range []cache.SharedIndexInformer{core.Pods().Informer(), apps.ControllerRevisions().Informer()} {
		if err := controller.IndexByOwner(informer); err != nil {
			return nil, err
		}
	}
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder(Name), clock: deps.Clock, removals: controller.NewExpectations(deps.Clock),
		sets: apps.StatefulSets().Lister(), claims: core.PersistentVolumeClaims().Lister(), podIndex: core.Pods().Informer().GetIndexer(),
		revisions: controller.Revisions{Client: deps.Client, Index: apps.ControllerRevisions().Informer().GetIndexer(), Kind: gvk},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.Reads(core.PersistentVolumeClaims().Informer())
	c.Reads(apps.ControllerRevisions().Informer())
	if err := c.Handle(apps.StatefulSets().Informer(), controller.OnAny(func(set *appsv1.StatefulSet) { c.AddObject(set) })); err != nil {
		return nil, err
	}
	return c, c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podChanged, Update: c.podUpdated, Delete: c.podDeleted})
}

func ownerKey(pod *corev1.Pod) (string, bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != gvk.Kind || ref.APIVersion != gvk.GroupVersion().String() {
		return "", false
	}
	return pod.Namespace + "/" + ref.Name, true
}

func (c *Controller) podChanged(pod *corev1.Pod) {
	if key, owned := ownerKey(pod); owned {
		if pod.DeletionTimestamp != nil {
			c.removals.ObservedGone(key, pod.UID)
		}
		c.Add(key)
		return
	}
	c.offer(pod)
}

func (c *Controller) podDeleted(pod *corev1.Pod) {
	if key, owned := ownerKey(pod); owned {
		c.removals.ObservedGone(key, pod.UID)
	}
	c.podChanged(pod)
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.ResourceVersion == pod.ResourceVersion {
		return
	}
	before, owned := ownerKey(old)
	if after, _ := ownerKey(pod); owned && before != after {
		c.Add(before)
	}
	c.podChanged(pod)
}

// offer shows a pod without a controller to the sets that may adopt it.
func (c *Controller) offer(pod *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(pod) != nil || len(pod.Labels) == 0 {
		return
	}
	sets, err := c.sets.StatefulSets(pod.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, set := range sets {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.AddObject(set)
		}
	}
}
