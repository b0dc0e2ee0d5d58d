// Package daemonset keeps one pod of a DaemonSet on every node that it fits.
//
// A sync reads the set, the nodes and the set's pods from the caches and plans node by node (type plan): which nodes need a pod, which pods must go. The
// pods are bound by the scheduler: each is made for one node by an affinity to the node's name. A rolling update then replaces pods of earlier
// revisions within maxUnavailable or maxSurge. Set, pod, revision and node events lead to syncs; a node event only of the sets for
// which it changes the answer. See README.md for the rules.
package daemonset

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
const Name = "daemonset-controller"

var gvk = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// Controller keeps daemons on nodes.
type Controller struct {
	*controller.Loop
	client       kubernetes.Interface
	recorder     record.EventRecorder
	control      controller.PodControl
	expectations *controller.Expectations
	clock        clock.PassiveClock
	sets         appslisters.DaemonSetLister
	nodes        corelisters.NodeLister
	podIndex     cache.Indexer
	revisions    controller.Revisions

	mu       sync.Mutex
	failures map[failureKey]*failure
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, apps := deps.Informers.Core().V1(), deps.Informers.Apps().V1()
	for _, informer := range []cache.SharedIndexInformer{core.Pods().Informer(), apps.ControllerRevisions().Informer()} {
		if err := controller.IndexByOwner(informer); err != nil {
			return nil, err
		}
	}
	recorder := deps.Recorder(Name)
	c := &Controller{
		client: deps.Client, recorder: recorder, control: controller.PodControl{Client: deps.Client, Recorder: recorder},
		expectations: controller.NewExpectations(deps.Clock), clock: deps.Clock,
		sets: apps.DaemonSets().Lister(), nodes: core.Nodes().Lister(), podIndex: core.Pods().Informer().GetIndexer(),
		revisions: controller.Revisions{Client: deps.Client, Index: apps.ControllerRevisions().Informer().GetIndexer(), Kind: gvk},
		failures:  map[failureKey]*failure{},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	return c, c.watch(deps)
}

func (c *Controller) watch(deps controller.Deps) error {
	core, apps := deps.Informers.Core().V1(), deps.Informers.Apps().V1()
	if err := c.Handle(apps.DaemonSets().Informer(), controller.Handlers[*appsv1.DaemonSet]{
		Add:    func(ds *appsv1.DaemonSet) { c.AddObject(ds) },
		Update: func(_, ds *appsv1.DaemonSet) { c.AddObject(ds) },
		Delete: func(ds *appsv1.DaemonSet) { c.expectations.Forget(keyOf(ds)); c.AddObject(ds) },
	}); err != nil {
		return err
	}
	if err := c.Handle(apps.ControllerRevisions().Informer(), controller.OnAny(func(r *appsv1.ControllerRevision) {
		if key, owned := ownerKey(r); owned {
			c.Add(key)
		}
	})); err != nil {
		return err
	}
	if err := c.Handle(core.Nodes().Informer(), controller.Handlers[*corev1.Node]{
		Add:    func(node *corev1.Node) { c.nodeChanged(nil, node) },
		Update: c.nodeChanged,
		Delete: func(node *corev1.Node) { c.nodeChanged(node, nil) },
	}); err != nil {
		return err
	}
	return c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podAdded, Update: c.podUpdated, Delete: c.podGone})
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func ownerKey(obj metav1.Object) (string, bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != gvk.Kind || ref.APIVersion != gvk.GroupVersion().String() {
		return "", false
	}
	return obj.GetNamespace() + "/" + ref.Name, true
}

// nodeChanged wakes the sets for which the change of a node changes what must be there. nil stands for a node that is not there.
func (c *Controller) nodeChanged(old, node *corev1.Node) {
	if old != nil && node != nil && equality.Semantic.DeepEqual(old.Labels, node.Labels) &&
		equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) && old.Name == node.Name {
		return
	}
	sets, err := c.sets.List(labels.Everything())
	if err != nil {
		return
	}
	for _, ds := range sets {
		var before, after placement
		if old != nil {
			before = place(ds, old)
		}
		if node != nil {
			after = place(ds, node)
		}
		if before != after {
			c.AddObject(ds)
		}
	}
}

func (c *Controller) podAdded(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		c.podGone(pod)
		return
	}
	if key, owned := ownerKey(pod); owned {
		c.expectations.ObservedAdd(key, pod.UID)
		c.Add(key)
		return
	}
	c.offer(pod)
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.ResourceVersion == pod.ResourceVersion {
		return
	}
	before, owned := ownerKey(old)
	if after, _ := ownerKey(pod); owned && before != after {
		c.expectations.ObservedGone(before, old.UID)
		c.Add(before)
	}
	c.podAdded(pod)
}

func (c *Controller) podGone(pod *corev1.Pod) {
	if key, owned := ownerKey(pod); owned {
		c.expectations.ObservedGone(key, pod.UID)
		c.Add(key)
	}
}

// offer shows a pod without a controller to the sets that may adopt it.
func (c *Controller) offer(pod *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(pod) != nil || len(pod.Labels) == 0 {
		return
	}
	sets, err := c.sets.DaemonSets(pod.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, ds := range sets {
		selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.AddObject(ds)
		}
	}
}
