package core

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SetNode takes in a node, or what it has become.
func (c *Core) SetNode(node *v1.Node, now time.Time) {
	if c.Ledger.SetNode(node) == 0 {
		return
	}
	slot, _ := c.Ledger.Slot(node.Name)
	c.happened(slot, now)
}

// DeleteNode forgets a node. The pods on it are on record until they are deleted themselves.
func (c *Core) DeleteNode(name string, now time.Time) {
	if c.Ledger.DeleteNode(name) {
		c.happened(ledger.None, now)
	}
}

// SetNamespace takes in a namespace's labels.
func (c *Core) SetNamespace(name string, set labels.Set, now time.Time) {
	c.Ledger.SetNamespace(name, set)
	c.happened(ledger.None, now)
}

// DeleteNamespace forgets a namespace.
func (c *Core) DeleteNamespace(name string) { c.Ledger.DeleteNamespace(name) }

// happened has those unschedulable pods tried again that a change on a node could help. Instead of guessing from the
// kind of change, the changed node itself is put before the pod's plugins, once for all equal pods.
func (c *Core) happened(slot int32, now time.Time) {
	c.Queue.Move(func(g *queue.Group) bool {
		return c.engines[g.Profile].Helps(g.Shape, g.Priority, g.Rejectors, slot, &g.Seen)
	}, now)
}
