// Package podgc removes pods that nobody else will: those of nodes that are gone, those that are to be deleted but were never assigned to a
// node, those that hang on a node that was declared out of service, and finished ones beyond a threshold.
//
// Keys name what is to be looked at: a pod, all pods of a node, or the finished pods. Pod and node events lead to them; a pod of an
// unknown node is looked at again when the node has been missing for the quarantine time.
package podgc

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "pod-garbage-collector-controller"

const (
	// quarantine is how long a node must be missing before its pods are removed: it may be registering again.
	quarantine = 40 * time.Second
	// DefaultFinishedThreshold is how many finished pods may stay.
	DefaultFinishedThreshold = 12500
)

// Prefixes of keys.
const (
	podKey      = "pod/"
	nodeKey     = "node/"
	finishedKey = "finished"
)

// Controller removes left-over pods.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	clock     clock.PassiveClock
	pods      corelisters.PodLister
	podIndex  cache.Indexer
	nodes     corelisters.NodeLister
	finished  *finished
	threshold int
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	pods, nodes := deps.Informers.Core().V1().Pods(), deps.Informers.Core().V1().Nodes()
	if err := controller.IndexByNode(pods.Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		client: deps.Client, clock: deps.Clock, pods: pods.Lister(), podIndex: pods.Informer().GetIndexer(), nodes: nodes.Lister(),
		finished: newFinished(), threshold: DefaultFinishedThreshold,
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(nodes.Informer(), controller.Handlers[*corev1.Node]{
		Update: func(_, node *corev1.Node) { c.nodeChanged(node) },
		Delete: func(node *corev1.Node) { c.AddAfter(nodeKey+node.Name, quarantine) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(pods.Informer(), controller.Handlers[*corev1.Pod]{
		Add: c.podChanged, Update: func(_, pod *corev1.Pod) { c.podChanged(pod) }, Delete: c.finished.remove,
	})
}

func (c *Controller) nodeChanged(node *corev1.Node) {
	if outOfService(node) {
		c.Add(nodeKey + node.Name)
	}
}

func (c *Controller) podChanged(pod *corev1.Pod) {
	if c.finished.note(pod) > c.threshold {
		c.Add(finishedKey)
	}
	switch {
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp != nil {
			c.Add(podKey + pod.Namespace + "/" + pod.Name)
		}
	case pod.DeletionTimestamp != nil:
		if node, err := c.nodes.Get(pod.Spec.NodeName); err == nil && outOfService(node) {
			c.Add(nodeKey + node.Name)
		}
		fallthrough
	default:
		if _, err := c.nodes.Get(pod.Spec.NodeName); err != nil {
			c.AddAfter(nodeKey+pod.Spec.NodeName, quarantine)
		}
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	if key == finishedKey {
		return c.trimFinished(ctx)
	}
	if node, found := strings.CutPrefix(key, nodeKey); found {
		return c.syncNode(ctx, node)
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(strings.TrimPrefix(key, podKey))
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if pod.DeletionTimestamp == nil || pod.Spec.NodeName != "" {
		return nil
	}
	return c.remove(ctx, pod, reasonUnscheduled, nil)
}
