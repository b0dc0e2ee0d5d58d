// Package core is the scheduler without a cluster around it: ledger, queue and cycles, driven by calls.
//
// Whoever drives it (the scheduler's own loop, the simulator, a test) tells it what happened and the time, and asks it
// for the next decision:
//
//	SetNode, SetPod, DeletePod, ... ──► ledger, queue ──► Next ──► Attempt: a node (the pod is assumed there from now on)
//	        ▲                                                          or a diagnosis (the pod waits in the queue)
//	        └──────── Bound, BindFailed: what came of an Attempt ◄─────┘
//
// Core starts nothing, waits for nothing and reads no clock. It belongs to one goroutine.
package core

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Profile is a scheduler name and its plugins.
type Profile struct {
	SchedulerName string
	Plugins       cycle.Profile
}

// Config is what a Core is made from.
type Config struct {
	// Profiles must have different names.
	Profiles []Profile
	Cycle    cycle.Options
	Queue    queue.Options
}

// Core is the scheduler's state.
type Core struct {
	Ledger *ledger.Ledger
	Queue  *queue.Queue

	engines map[string]*cycle.Engine
	// volumes are the pods that have a node, but whose volumes have still to be bound; settled those of them that need not
	// wait any longer.
	volumes map[types.UID]*volumeWait
	settled []Settled

	// messages are why the pods in the queue were not placed the last time.
	messages map[types.UID]string
}

// New returns a core that knows of nothing.
func New(config Config) *Core {
	c := &Core{
		Ledger: ledger.New(), Queue: queue.New(config.Queue),
		engines: map[string]*cycle.Engine{}, messages: map[types.UID]string{}, volumes: map[types.UID]*volumeWait{},
	}
	for _, p := range config.Profiles {
		c.engines[p.SchedulerName] = cycle.New(c.Ledger, p.Plugins, config.Cycle)
	}
	return c
}

// Engine returns the engine of a scheduler name, nil if there is no such profile.
func (c *Core) Engine(schedulerName string) *cycle.Engine { return c.engines[schedulerName] }

// Attempt is one decision.
type Attempt struct {
	// Pod is as it was when it was decided.
	Pod *v1.Pod
	// Node is where the pod goes; empty if no node takes it.
	Node string
	// Volumes is what has to be written, and to come true, before the pod is bound; nil if nothing has.
	Volumes *storage.Plan
	// Decision tells the numbers behind it.
	Decision cycle.Decision
	// Diagnosis is why no node takes the pod; nil if one does.
	Diagnosis *cycle.Diagnosis
	// Eviction is what preemption came to, nil if it was not tried. If it names a node the victims are to be deleted.
	Eviction *cycle.Eviction
	// Displaced are pods of lower priority that were nominated to that node and no longer are.
	Displaced []*v1.Pod
	// Attempts counts the decisions on this pod, First is when it came into the queue.
	Attempts int
	First    time.Time
}

// Next decides on the next pod. It returns nil if there is none to be tried now.
func (c *Core) Next(now time.Time) *Attempt {
	item := c.Queue.Pop(now)
	if item == nil {
		return nil
	}
	engine := c.engines[item.Pod.Spec.SchedulerName]
	pod := podOf(item)
	decision := engine.Decide(&pod)
	attempt := &Attempt{Pod: item.Pod, Decision: decision, Attempts: item.Attempts, First: item.First}
	if decision.Slot != ledger.None {
		attempt.Node = c.Ledger.NodeName(decision.Slot)
		c.planVolumes(attempt, engine, &pod, decision.Slot, now)
		c.assume(item, attempt.Node, now)
		return attempt
	}
	diagnosis := engine.Diagnose(&pod)
	attempt.Diagnosis = &diagnosis
	if engine.Preempts() && diagnosis.Nodes > 0 {
		c.preempt(item, engine, attempt, now)
	}
	group := c.Queue.Reject(item, diagnosis.Plugins(), now)
	if group.Seen == 0 {
		group.Seen = engine.Seen(item.Shape)
	}
	c.remember(item.Pod.UID, attempt.Message())
	return attempt
}

// Message is why the pod was not placed, as people know it.
func (a *Attempt) Message() string {
	if a.Diagnosis == nil {
		return ""
	}
	text := a.Diagnosis.Message()
	if a.Eviction != nil && a.Eviction.Message != "" {
		text += " " + a.Eviction.Message
	}
	return text
}

func podOf(item *queue.Item) cycle.Pod {
	return cycle.Pod{UID: item.Pod.UID, Shape: item.Shape, Priority: item.Priority, Nominated: item.Nominated}
}

// assume counts the pod on the node before the API server knows.
func (c *Core) assume(item *queue.Item, node string, now time.Time) {
	c.Ledger.Shapes.Retain(item.Shape)
	c.Ledger.AddPod(&ledger.Pod{
		UID: item.Pod.UID, Name: item.Pod.Name, Shape: item.Shape, Priority: item.Priority,
		Started: now.UnixNano(), Assumed: true,
	}, node)
	c.nominate(item, "", now)
	// It can help those only that count pods elsewhere, such as pods that want to be near it. What the watch tells later is no news.
	c.happened(ledger.None, now)
}

// nominate reserves room on a node for a pod that waits, or takes the reservation back: then others may have the room.
func (c *Core) nominate(item *queue.Item, node string, now time.Time) {
	old := item.Nominated
	if old == "" && node == "" {
		return
	}
	item.Nominated = node
	pod := podOf(item)
	for _, engine := range c.engines {
		engine.Nominate(&pod, node)
	}
	if slot, known := c.Ledger.Slot(old); known && old != node {
		c.happened(slot, now)
	}
}

// Bound is called when the API server has accepted a pod's node.
func (c *Core) Bound(uid types.UID, now time.Time) {
	if item := c.Queue.Get(uid); item != nil {
		c.dequeue(item, now)
	}
}

// BindFailed is called when a pod could not be bound: it no longer counts where it was assumed, and is tried again after
// a back-off. It returns false for a pod that was deleted meanwhile, or turned out to be bound after all: that has been
// seen to already.
func (c *Core) BindFailed(uid types.UID, now time.Time) bool {
	c.forgetVolumes(uid)
	pod := c.Ledger.Pod(uid)
	if pod == nil || !pod.Assumed {
		return false
	}
	c.uncount(pod, now)
	item := c.Queue.Get(uid)
	if item != nil {
		c.Queue.Fail(item, now)
	}
	return item != nil
}

// dequeue takes a pod out of the queue for good.
func (c *Core) dequeue(item *queue.Item, now time.Time) {
	c.forgetVolumes(item.Pod.UID)
	c.Queue.Done(item.Pod.UID)
	c.nominate(item, "", now)
	delete(c.messages, item.Pod.UID)
	c.Ledger.Shapes.Release(item.Shape)
}
