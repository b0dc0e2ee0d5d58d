// Package queue orders the pods that wait for a node.
//
//	Add ──► active ──► Pop ──► (a cycle) ──► placed: Done
//	          ▲                    │
//	          │ back-off over      ├── rejected: unschedulable ──┐ an event that could help, or five minutes
//	          └── back-off ◄───────┴── failed: back-off          │
//	                 ▲                                           │
//	                 └───────────────────────────────────────────┘
//	gated: pods with scheduling gates, which are not tried at all
//
// The active pods are ordered by priority, then by the time they came in, then by a number that is different for each,
// so that there is exactly one order. A pod that could not be placed waits 1 s before it is tried again, twice as long
// each time, at most 10 s. Unschedulable pods of one shape and priority that the same plugins rejected wait as one
// Group: whether an event could help is asked once for all of them.
//
// The queue belongs to one goroutine and is told the time.
package queue

import (
	"container/heap"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Options are the times of the queue. Zero values stand for the defaults.
type Options struct {
	// InitialBackoff (1 s) and MaxBackoff (10 s) bound the wait after a failed attempt.
	InitialBackoff, MaxBackoff time.Duration
	// Leftover (5 min) is how long a pod stays unschedulable if nothing happens that could help.
	Leftover time.Duration
}

// Place is where in the queue a pod is.
type Place int

// The places.
const (
	// InFlight: popped, being decided or bound.
	InFlight Place = iota
	Active
	Backoff
	Unschedulable
	Gated
)

// String returns the name of the place.
func (p Place) String() string {
	return [...]string{"in flight", "active", "back-off", "unschedulable", "gated"}[p]
}

// Item is a pod that waits.
type Item struct {
	Pod      *v1.Pod
	Shape    *shape.Shape
	Priority int32
	// Nominated is the node on which preemption has made room.
	Nominated string
	// Attempts counts how often the pod was popped; Failures how often it was then not placed.
	Attempts, Failures int
	// Since is when the pod came to its present place, First when it first came in.
	Since, First time.Time
	// Until is when the back-off ends.
	Until time.Time
	// Rejectors are the plugins because of which the pod is unschedulable, sorted.
	Rejectors []string
	// Place is where the item is now.
	Place Place

	seq   uint64
	at    int
	group *Group
}

// Queue holds the waiting pods.
type Queue struct {
	options  Options
	items    map[types.UID]*Item
	active   itemHeap
	backoff  itemHeap
	groups   map[groupKey]*Group
	waiting  int
	gated    int
	leftover time.Time
	seq      uint64
	groupSeq uint64
}

// New returns an empty queue.
func New(options Options) *Queue {
	if options.InitialBackoff == 0 {
		options.InitialBackoff = time.Second
	}
	if options.MaxBackoff == 0 {
		options.MaxBackoff = 10 * time.Second
	}
	if options.Leftover == 0 {
		options.Leftover = 5 * time.Minute
	}
	return &Queue{
		options: options, items: map[types.UID]*Item{}, groups: map[groupKey]*Group{},
		active: itemHeap{less: before}, backoff: itemHeap{less: sooner},
	}
}

// Len returns the number of pods in the queue, those in flight included.
func (q *Queue) Len() int { return len(q.items) }

// Counts returns how many pods are in each place.
func (q *Queue) Counts() map[Place]int {
	waiting := map[Place]int{
		Active: q.active.Len(), Backoff: q.backoff.Len(), Unschedulable: q.waiting, Gated: q.gated,
	}
	waiting[InFlight] = len(q.items) - q.active.Len() - q.backoff.Len() - q.waiting - q.gated
	return waiting
}

// Get returns the item of a pod, nil if the pod is not in the queue.
func (q *Queue) Get(uid types.UID) *Item { return q.items[uid] }

// Ahead returns how many active pods are tried before an active one.
func (q *Queue) Ahead(item *Item) (n int) {
	for _, other := range q.active.list {
		if before(other, item) {
			n++
		}
	}
	return n
}

// Latest returns when an unschedulable pod is tried again even if nothing happens.
func (q *Queue) Latest(item *Item) time.Time { return item.Since.Add(q.options.Leftover) }

// Each calls do for every item, in no particular order.
func (q *Queue) Each(do func(*Item)) {
	for _, item := range q.items {
		do(item)
	}
}

// Add takes in a pod that is not in the queue yet.
func (q *Queue) Add(item *Item, now time.Time) {
	q.seq++
	item.seq, item.First = q.seq, now
	q.items[item.Pod.UID] = item
	q.enter(item, now)
}

func (q *Queue) enter(item *Item, now time.Time) {
	item.Since = now
	if len(item.Pod.Spec.SchedulingGates) > 0 {
		item.Place = Gated
		q.gated++
		return
	}
	q.activate(item)
}

func (q *Queue) activate(item *Item) {
	item.Place = Active
	heap.Push(&q.active, item)
}

// Changed takes note that the pod of an item has changed; item must hold the new pod already. A pod whose change may
// help, because helps says so or because its last gate is gone, is tried again.
func (q *Queue) Changed(item *Item, helps bool, now time.Time) {
	switch item.Place {
	case Active:
		heap.Fix(&q.active, item.at)
	case Gated:
		q.leave(item)
		q.enter(item, now)
	case Unschedulable:
		q.leave(item)
		if helps {
			q.retry(item, now)
			return
		}
		q.wait(item)
	}
}

// Delete takes a pod out, wherever it is.
func (q *Queue) Delete(uid types.UID) {
	if item := q.items[uid]; item != nil {
		q.leave(item)
		delete(q.items, uid)
	}
}

// leave takes an item out of its place.
func (q *Queue) leave(item *Item) {
	switch item.Place {
	case Active:
		heap.Remove(&q.active, item.at)
	case Backoff:
		heap.Remove(&q.backoff, item.at)
	case Unschedulable:
		q.ungroup(item)
	case Gated:
		q.gated--
	}
	item.Place = InFlight
}

// Pop returns the next pod to try, nil if none is active.
func (q *Queue) Pop(now time.Time) *Item {
	q.Flush(now)
	if q.active.Len() == 0 {
		return nil
	}
	item := heap.Pop(&q.active).(*Item)
	item.Place, item.Since = InFlight, now
	item.Attempts++
	return item
}

// Done takes out a pod that has been placed for good.
func (q *Queue) Done(uid types.UID) { q.Delete(uid) }

// Reject puts back a pod that no node takes. It waits, in the group returned, for an event that could help against one of
// the plugins.
func (q *Queue) Reject(item *Item, rejectors []string, now time.Time) *Group {
	item.Rejectors, item.Since = rejectors, now
	item.Failures++
	item.Until = now.Add(q.backoffOf(item))
	q.wait(item)
	return item.group
}

// Fail puts back a pod whose attempt failed for a reason that has nothing to do with the cluster's state.
func (q *Queue) Fail(item *Item, now time.Time) {
	item.Rejectors, item.Since = nil, now
	item.Failures++
	item.Until = now.Add(q.backoffOf(item))
	item.Place = Backoff
	heap.Push(&q.backoff, item)
}

func (q *Queue) backoffOf(item *Item) time.Duration {
	wait := q.options.InitialBackoff
	for i := 1; i < item.Failures && wait < q.options.MaxBackoff; i++ {
		wait *= 2
	}
	return min(wait, q.options.MaxBackoff)
}

// retry sends an item that left the unschedulable ones back to be tried, after what is left of its back-off.
func (q *Queue) retry(item *Item, now time.Time) {
	item.Since = now
	if item.Until.After(now) {
		item.Place = Backoff
		heap.Push(&q.backoff, item)
		return
	}
	q.activate(item)
}

// Activate has a pod tried as soon as its turn comes, without back-off.
func (q *Queue) Activate(uid types.UID, now time.Time) {
	item := q.items[uid]
	if item == nil || item.Place != Unschedulable && item.Place != Backoff {
		return
	}
	q.leave(item)
	item.Since = now
	q.activate(item)
}
