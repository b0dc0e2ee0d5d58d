// Package ttl tells nodes, by an annotation, for how long they may keep Secrets and ConfigMaps before they ask again: the more nodes, the longer.
//
// Node events change the count of nodes and lead to a sync of the node; a count that crosses a bound leads to a sync of all.
package ttl

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "ttl-controller"

// step is a range of cluster sizes and what nodes are told there. Ranges overlap, so that a cluster whose size moves around a bound is left alone.
type step struct{ from, to, seconds int }

// steps are those of kube-controller-manager.
var steps = []step{{0, 100, 0}, {90, 500, 15}, {450, 1000, 30}, {900, 2000, 60}, {1800, math.MaxInt, 300}}

// Controller annotates nodes.
type Controller struct {
	*controller.Loop
	client kubernetes.Interface
	nodes  corelisters.NodeLister

	mu    sync.Mutex
	count int
	step  int
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	nodes := deps.Informers.Core().V1().Nodes()
	c := &Controller{client: deps.Client, nodes: nodes.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	return c, c.Handle(nodes.Informer(), controller.Handlers[*corev1.Node]{
		Add: func(node *corev1.Node) {
			c.counted(1)
			c.AddObject(node)
		},
		Update: func(old, node *corev1.Node) {
			if old.Annotations[corev1.ObjectTTLAnnotationKey] != node.Annotations[corev1.ObjectTTLAnnotationKey] {
				c.AddObject(node)
			}
		},
		Delete: func(*corev1.Node) { c.counted(-1) },
	})
}

// counted notes that there are more or fewer nodes, and looks at all when that changes what they are told.
func (c *Controller) counted(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += change
	before := c.step
	for c.count > steps[c.step].to {
		c.step++
	}
	for c.count < steps[c.step].from {
		c.step--
	}
	if c.step == before {
		return
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	for _, node := range nodes {
		c.AddObject(node)
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	node, err := c.nodes.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	want := c.seconds()
	if node.Annotations[corev1.ObjectTTLAnnotationKey] == want {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1.ObjectTTLAnnotationKey, want)
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate Node %s: %w", name, err)
	}
	return nil
}

func (c *Controller) seconds() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.Itoa(steps[c.step].seconds)
}
