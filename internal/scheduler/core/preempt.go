package core

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// preempt looks for a node on which pods of lower priority could make room. If there is one the pod is nominated to it:
// it has to wait until the victims are gone, and pods of no higher priority leave the room to it.
func (c *Core) preempt(item *queue.Item, engine *cycle.Engine, attempt *Attempt, now time.Time) {
	pod := podOf(item)
	policy := item.Pod.Spec.PreemptionPolicy
	eviction := engine.Preempt(&pod, policy != nil && *policy == v1.PreemptNever)
	attempt.Eviction = eviction
	if eviction.Node == "" {
		if eviction.Helpless {
			c.nominate(item, "", now)
		}
		return
	}
	for _, victim := range eviction.Victims {
		victim.Preempted = true
	}
	for _, rival := range engine.Nominees(eviction.Node) {
		if other := c.Queue.Get(rival.UID); other != nil && other.Priority < item.Priority {
			c.nominate(other, "", now)
			attempt.Displaced = append(attempt.Displaced, other.Pod)
		}
	}
	c.nominate(item, eviction.Node, now)
}

// EvictionFailed is called when a victim could not be deleted: the pod that it was to make room for may try others.
func (c *Core) EvictionFailed(victim, preemptor types.UID, now time.Time) {
	if pod := c.Ledger.Pod(victim); pod != nil && !pod.Terminating {
		pod.Preempted = false
	}
	if item := c.Queue.Get(preemptor); item != nil {
		c.nominate(item, "", now)
		c.Queue.Activate(preemptor, now)
	}
}

// preempted reports whether a pod that is being deleted has been preempted.
func preempted(pod *v1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == v1.DisruptionTarget {
			return condition.Status == v1.ConditionTrue && condition.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}
