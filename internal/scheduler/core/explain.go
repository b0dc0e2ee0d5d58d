package core

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Explanation is everything that the scheduler can say about a pod.
type Explanation struct {
	// Place is where in the queue the pod is: active, back-off, unschedulable, gated, in flight; or placed, or unknown.
	Place string `json:"place"`
	// Node is where the pod is, or is being bound to; Nominated where preemption makes room for it.
	Node      string `json:"node,omitempty"`
	Nominated string `json:"nominated,omitempty"`
	Attempts  int    `json:"attempts,omitempty"`
	// Ahead is how many active pods are tried before it.
	Ahead int `json:"ahead,omitempty"`
	// Since is when the pod came to its place, RetryAt when it is tried again at the latest.
	Since   *time.Time `json:"since,omitempty"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
	// WaitsFor are the plugins whose rejection an event has to help against.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Message is that of the last attempt that failed.
	Message string `json:"message,omitempty"`
	// Record is how the pod would be decided on now; of a pod that has a node, how if it had none.
	Record *cycle.Record `json:"record,omitempty"`
}

// Explain tells about a pod. The pod's state is left as it is.
func (c *Core) Explain(pod *v1.Pod, options cycle.RecordOptions) *Explanation {
	engine := c.engines[pod.Spec.SchedulerName]
	x := &Explanation{Place: "unknown"}
	item, record := c.Queue.Get(pod.UID), c.Ledger.Pod(pod.UID)
	if item != nil {
		c.explainItem(x, item)
		pod = item.Pod
	}
	if record != nil {
		x.Node = c.Ledger.NodeOf(record)
		if item == nil {
			x.Place = "placed"
		}
	}
	if engine == nil {
		return x
	}
	compiled := c.Ledger.Shapes.Compile(pod)
	defer c.Ledger.Shapes.Release(compiled)
	asked := cycle.Pod{UID: pod.UID, Shape: compiled, Priority: priorityOf(pod)}
	x.Record = c.recordWithout(record, engine, &asked, options)
	return x
}

// recordWithout records a decision as if the pod, should it have a node, had none.
func (c *Core) recordWithout(pod *ledger.Pod, engine *cycle.Engine, asked *cycle.Pod, options cycle.RecordOptions) *cycle.Record {
	if pod == nil || pod.Slot == ledger.None {
		return engine.Record(asked, options)
	}
	mark := c.Ledger.Mark()
	defer c.Ledger.Rollback(mark)
	c.Ledger.RemovePod(pod)
	return engine.Record(asked, options)
}

func (c *Core) explainItem(x *Explanation, item *queue.Item) {
	x.Place, x.Nominated, x.Attempts, x.WaitsFor = item.Place.String(), item.Nominated, item.Attempts, item.Rejectors
	x.Message = c.messages[item.Pod.UID]
	since := item.Since
	x.Since = &since
	switch item.Place {
	case queue.Active:
		x.Ahead = c.Queue.Ahead(item)
	case queue.Backoff:
		until := item.Until
		x.RetryAt = &until
	case queue.Unschedulable:
		latest := c.Queue.Latest(item)
		x.RetryAt = &latest
	}
}

// remember keeps the message of a pod that waits.
func (c *Core) remember(uid types.UID, message string) { c.messages[uid] = message }
