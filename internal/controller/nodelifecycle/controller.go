// Package nodelifecycle notices nodes that have stopped and says so: in their conditions, in taints, and in the conditions of their pods.
//
// A node lives while its Lease is renewed or its status is written. Each sign of life, by the clock of this process, sets the moment at which the
// node would be given up; a sync at that moment makes its conditions Unknown. Every sync also brings the taints in line with the
// conditions: NoSchedule taints at once, NoExecute taints at the rate of the node's zone. Package tainteviction acts on those. See README.md for
// the rules.
package nodelifecycle

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "node-lifecycle-controller"

const (
	// gracePeriod is how long a node may be silent.
	gracePeriod = 50 * time.Second
	// startupGracePeriod is how long a new node may take to report for the first time.
	startupGracePeriod = 60 * time.Second
)

// Controller watches over nodes.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	recorder record.EventRecorder
	clock    clock.PassiveClock
	fresh    *controller.Freshness
	nodes    corelisters.NodeLister
	podIndex cache.Indexer
	zones    *zones

	mu    sync.Mutex
	signs map[string]time.Time // the last sign of life of each node
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, leases := deps.Informers.Core().V1(), deps.Informers.Coordination().V1().Leases()
	if err := controller.IndexByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder("node-controller"), clock: deps.Clock, fresh: controller.NewFreshness(),
		nodes: core.Nodes().Lister(), podIndex: core.Pods().Informer().GetIndexer(), zones: newZones(), signs: map[string]time.Time{},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.Reads(core.Pods().Informer())
	if err := c.Handle(core.Nodes().Informer(), controller.Handlers[*corev1.Node]{
		Add: c.nodeAdded, Update: c.nodeUpdated, Delete: c.nodeDeleted}); err != nil {
		return nil, err
	}
	return c, c.Handle(leases.Informer(), controller.Handlers[*coordinationv1.Lease]{Add: c.leaseSeen, Update: c.leaseUpdated})
}

func (c *Controller) nodeAdded(node *corev1.Node) {
	c.sign(node.Name)
	c.Add(node.Name)
}

func (c *Controller) nodeUpdated(old, node *corev1.Node) {
	// A status that we wrote ourselves is no sign of life: it leaves the heartbeats as they were.
	if heartbeat(node).After(heartbeat(old)) {
		c.sign(node.Name)
	}
	if !equality.Semantic.DeepEqual(old.Spec, node.Spec) || !equality.Semantic.DeepEqual(old.Status.Conditions, node.Status.Conditions) {
		c.Add(node.Name)
	}
}

func (c *Controller) nodeDeleted(node *corev1.Node) {
	c.fresh.Forget(node.UID)
	c.zones.remove(node.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.signs, node.Name)
}

// heartbeat is the newest heartbeat of the node's conditions.
func heartbeat(node *corev1.Node) (last time.Time) {
	for _, condition := range node.Status.Conditions {
		if condition.LastHeartbeatTime.After(last) {
			last = condition.LastHeartbeatTime.Time
		}
	}
	return last
}

func (c *Controller) leaseSeen(lease *coordinationv1.Lease) {
	if lease.Namespace == corev1.NamespaceNodeLease {
		c.sign(lease.Name)
	}
}

func (c *Controller) leaseUpdated(old, lease *coordinationv1.Lease) {
	if old.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
		return
	}
	c.leaseSeen(lease)
	// A node that was given up is back. For the others a renewal changes nothing, and nothing is done.
	if node, err := c.nodes.Get(lease.Name); err == nil && conditionOf(node, corev1.NodeReady).Status == corev1.ConditionUnknown {
		c.Add(node.Name)
	}
}

// sign notes a sign of life.
func (c *Controller) sign(node string) {
	now := c.clock.Now()
	c.mu.Lock()
	_, known := c.signs[node]
	c.signs[node] = now
	c.mu.Unlock()
	if !known {
		c.AddAfter(node, gracePeriod)
	}
}

// silentFor is how long the node has not been heard of.
func (c *Controller) silentFor(node string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Since(c.signs[node])
}

func (c *Controller) sync(ctx context.Context, name string) error {
	node, err := c.nodes.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if c.fresh.Stale(node) {
		return nil // the event of our own write is on its way and brings us back
	}
	if node, err = c.judge(ctx, node); err != nil {
		return err
	}
	changed := c.zones.note(node)
	if err := c.syncTaints(ctx, node); err != nil {
		return err
	}
	if changed {
		c.wakeDisrupted()
	}
	if disruption(node) != "" {
		return c.markPods(ctx, node)
	}
	return nil
}
