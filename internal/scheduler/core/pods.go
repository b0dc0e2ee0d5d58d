package core

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetPod takes in a pod, or what it has become.
func (c *Core) SetPod(pod *v1.Pod, now time.Time) {
	switch {
	case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		c.DeletePod(pod.UID, now)
	case pod.Spec.NodeName != "":
		c.setAssigned(pod, now)
	default:
		c.setPending(pod, now)
	}
}

// DeletePod forgets a pod.
func (c *Core) DeletePod(uid types.UID, now time.Time) {
	if item := c.Queue.Get(uid); item != nil {
		c.dequeue(item, now)
	}
	if pod := c.Ledger.Pod(uid); pod != nil {
		c.uncount(pod, now)
	}
}

// setAssigned counts a pod that has a node.
func (c *Core) setAssigned(pod *v1.Pod, now time.Time) {
	if item := c.Queue.Get(pod.UID); item != nil {
		c.dequeue(item, now)
	}
	compiled := c.Ledger.Shapes.Compile(pod)
	old := c.Ledger.Pod(pod.UID)
	if old != nil && old.Shape == compiled && c.Ledger.NodeOf(old) == pod.Spec.NodeName {
		c.Ledger.Shapes.Release(compiled)
		old.Assumed = false
		c.Ledger.SetPriority(old, priorityOf(pod))
		if pod.Status.StartTime != nil {
			old.Started = pod.Status.StartTime.UnixNano()
		}
		if pod.DeletionTimestamp != nil {
			old.Preempted = preempted(pod)
			c.terminating(old, now)
		}
		return
	}
	if old != nil {
		c.uncount(old, now)
	}
	record := recordOf(pod, compiled, now)
	c.Ledger.AddPod(record, pod.Spec.NodeName)
	c.happened(record.Slot, now)
}

func recordOf(pod *v1.Pod, compiled *shape.Shape, now time.Time) *ledger.Pod {
	started := now
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	return &ledger.Pod{
		UID: pod.UID, Name: pod.Name, Shape: compiled, Priority: priorityOf(pod), Started: started.UnixNano(),
		Terminating: pod.DeletionTimestamp != nil, Preempted: preempted(pod),
	}
}

func (c *Core) terminating(pod *ledger.Pod, now time.Time) {
	if !pod.Terminating {
		c.Ledger.SetTerminating(pod)
		// It still holds its resources; only what counts pods elsewhere can have changed.
		c.happened(ledger.None, now)
	}
}

// setPending queues a pod that waits for a node, if it is one of ours.
func (c *Core) setPending(pod *v1.Pod, now time.Time) {
	item := c.Queue.Get(pod.UID)
	ours := c.engines[pod.Spec.SchedulerName] != nil && pod.DeletionTimestamp == nil
	switch {
	case !ours && item != nil:
		c.DeletePod(pod.UID, now)
	case ours && item == nil && c.Ledger.Pod(pod.UID) != nil:
		// It has been bound already; this is older news.
	case ours && item == nil:
		item = &queue.Item{Pod: pod, Shape: c.Ledger.Shapes.Compile(pod), Priority: priorityOf(pod)}
		c.Queue.Add(item, now)
		c.nominate(item, pod.Status.NominatedNodeName, now)
	case ours:
		c.update(item, pod, now)
	}
}

// update takes note of a change of a pod that waits. While it is in flight the change counts for the next attempt.
func (c *Core) update(item *queue.Item, pod *v1.Pod, now time.Time) {
	compiled := c.Ledger.Shapes.Compile(pod)
	changed := compiled != item.Shape
	nominated := item.Nominated
	if said := pod.Status.NominatedNodeName; said != item.Pod.Status.NominatedNodeName {
		nominated = said
	}
	c.Ledger.Shapes.Release(item.Shape)
	item.Pod, item.Shape, item.Priority = pod, compiled, priorityOf(pod)
	if item.Place == queue.InFlight {
		return
	}
	c.nominate(item, nominated, now)
	c.Queue.Changed(item, changed, now)
}

// uncount takes a pod's record off its node.
func (c *Core) uncount(pod *ledger.Pod, now time.Time) {
	slot := pod.Slot
	c.Ledger.RemovePod(pod)
	c.Ledger.Shapes.Release(pod.Shape)
	c.happened(slot, now)
}

func priorityOf(pod *v1.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}
