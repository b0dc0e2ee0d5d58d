package replicas

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Burst is the largest number of pods that one sync makes or removes, so that a huge set does not keep others waiting.
const Burst = 500

// Controller is the engine for one kind.
type Controller struct {
	*controller.Loop
	kind         Kind
	control      controller.PodControl
	expectations *controller.Expectations
	clock        clock.PassiveClock
	pods         cache.Indexer
	nodes        corelisters.NodeLister
	sizes        sync.Map // how many pods each key had at its last sync
}

// A sync looks at all pods of a set. Where they are many, changes of single pods are gathered first: for 100 µs a pod, so that about as much
// time is spent on looking as on waiting, and for no more than a second. Small sets react at once.
const (
	gatherFrom   = 50
	gatherPerPod = 100 * time.Microsecond
	gatherMax    = time.Second
)

// addSoon asks for a sync because of a pod that changed.
func (c *Controller) addSoon(key string) {
	if n, known := c.sizes.Load(key); known && n.(int) > gatherFrom {
		c.AddAfter(key, min(time.Duration(n.(int))*gatherPerPod, gatherMax))
		return
	}
	c.Add(key)
}

// New makes the controller of a kind. name is its name in logs, metrics and events.
func New(name string, kind Kind, deps controller.Deps) (*Controller, error) {
	pods, nodes := deps.Informers.Core().V1().Pods(), deps.Informers.Core().V1().Nodes()
	if err := controller.IndexByOwner(pods.Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		kind:         kind,
		control:      controller.PodControl{Client: deps.Client, Recorder: deps.Recorder(name)},
		expectations: controller.NewExpectations(deps.Clock),
		clock:        deps.Clock,
		pods:         pods.Informer().GetIndexer(),
		nodes:        nodes.Lister(),
	}
	c.Loop = controller.NewLoop(name, deps, c.sync)
	c.Reads(nodes.Informer())
	if err := c.Handle(kind.Informer(), c.setHandlers()); err != nil {
		return nil, err
	}
	return c, c.Handle(pods.Informer(), controller.Handlers[*corev1.Pod]{Add: c.podAdded, Update: c.podUpdated, Delete: c.podGone})
}

func (c *Controller) setHandlers() cache.ResourceEventHandler {
	return controller.Handlers[metav1.Object]{
		Add: func(set metav1.Object) { c.AddObject(set) },
		Update: func(old, set metav1.Object) {
			if old.GetUID() != set.GetUID() {
				c.expectations.Forget(keyOf(set))
			}
			c.AddObject(set)
		},
		Delete: func(set metav1.Object) {
			c.expectations.Forget(keyOf(set))
			c.sizes.Delete(keyOf(set))
			c.AddObject(set)
		},
	}
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// ownerKey is the key of the pod's set, if it is one of this kind.
func (c *Controller) ownerKey(pod *corev1.Pod) (string, bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	gvk := c.kind.GVK()
	if ref == nil || ref.Kind != gvk.Kind || ref.APIVersion != gvk.GroupVersion().String() {
		return "", false
	}
	return pod.Namespace + "/" + ref.Name, true
}

func (c *Controller) podAdded(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		c.podGone(pod)
		return
	}
	if key, owned := c.ownerKey(pod); owned {
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
	oldKey, wasOwned := c.ownerKey(old)
	key, owned := c.ownerKey(pod)
	if wasOwned && (old.UID != pod.UID || oldKey != key) {
		c.expectations.ObservedGone(oldKey, old.UID)
		c.Add(oldKey)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		c.podGone(pod)
	case owned:
		c.expectations.ObservedAdd(key, pod.UID)
		c.addSoon(key)
	case wasOwned || !equality.Semantic.DeepEqual(old.Labels, pod.Labels):
		c.offer(pod)
	}
}

func (c *Controller) podGone(pod *corev1.Pod) {
	if key, owned := c.ownerKey(pod); owned {
		c.expectations.ObservedGone(key, pod.UID)
		c.Add(key)
	}
}

// offer shows a pod without a controller to the sets that may adopt it.
func (c *Controller) offer(pod *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return
	}
	for _, set := range c.kind.Matching(pod) {
		c.AddObject(set)
	}
}

func (c *Controller) zone(node string) string {
	n, err := c.nodes.Get(node)
	if err != nil {
		return ""
	}
	return n.Labels[corev1.LabelTopologyZone]
}

func (c *Controller) claim(ctx context.Context, set *Set) ([]*corev1.Pod, error) {
	namespace := set.Object.GetNamespace()
	candidates := append(controller.Owned[*corev1.Pod](c.pods, set.Object.GetUID()), orphans(c.pods, namespace)...)
	claimer := controller.Claimer[*corev1.Pod]{
		Owner: set.Object, Kind: c.kind.GVK(), Selector: set.Selector,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.kind.Fresh(ctx, namespace, set.Object.GetName())
		},
		Patch: c.control.Patch,
	}
	pods, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the pods of %s %s: %w", c.kind.GVK().Kind, keyOf(set.Object), err)
	}
	return pods, nil
}

// orphans are the pods without controller that are worth adopting.
func orphans(pods cache.Indexer, namespace string) []*corev1.Pod {
	return controller.ActivePods(controller.Orphans[*corev1.Pod](pods, namespace))
}
