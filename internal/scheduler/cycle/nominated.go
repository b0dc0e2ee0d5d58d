package cycle

import (
	"maps"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"k8s.io/apimachinery/pkg/types"
)

// nominations are the pods for which preemption has made room and that are not placed yet: others of no higher priority
// must leave them that room.
type nominations struct {
	byUID map[types.UID]*nomination
	count map[string]int
}

type nomination struct {
	pod  ledger.Pod
	node string
}

// Nominate reserves room for a pod on a node; an empty node takes the reservation back.
func (e *Engine) Nominate(pod *Pod, node string) {
	n := &e.nominee
	if old := n.byUID[pod.UID]; old != nil {
		delete(n.byUID, pod.UID)
		if n.count[old.node]--; n.count[old.node] == 0 {
			delete(n.count, old.node)
		}
	}
	if node == "" {
		return
	}
	if n.byUID == nil {
		n.byUID, n.count = map[types.UID]*nomination{}, map[string]int{}
	}
	n.byUID[pod.UID] = &nomination{
		pod: ledger.Pod{UID: pod.UID, Shape: pod.Shape, Priority: pod.Priority, Slot: ledger.None}, node: node,
	}
	n.count[node]++
}

// Nominees returns the pods nominated to a node, in a fixed order.
func (e *Engine) Nominees(node string) []*ledger.Pod {
	if e.nominee.count[node] == 0 {
		return nil
	}
	var out []*ledger.Pod
	for _, uid := range slices.Sorted(maps.Keys(e.nominee.byUID)) {
		if n := e.nominee.byUID[uid]; n.node == node {
			out = append(out, &n.pod)
		}
	}
	return out
}

// contested returns the nodes with pods nominated that the given pod has to leave room for.
func (e *Engine) contested(pod *Pod) []int32 {
	if len(e.nominee.byUID) == 0 {
		return nil
	}
	var slots []int32
	for _, other := range e.nominee.byUID {
		if slot, known := e.ledger.Slot(other.node); known && rivals(&other.pod, pod) {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots)
}

func rivals(nominee *ledger.Pod, pod *Pod) bool {
	return nominee.UID != pod.UID && nominee.Priority >= pod.Priority
}

// fitsBeside reports whether a node that takes the pod also takes it with the pods of no lower priority that are
// nominated to the node.
func (e *Engine) fitsBeside(v *view, pod *Pod, slot int32) bool {
	return e.besideRivals(v, pod, slot).filter < 0
}

// rejection is the first filter that rejects a node: in front of the pods of no lower priority that are nominated to it,
// or else without them.
func (e *Engine) rejection(v *view, pod *Pod, slot int32) rejection {
	if r := e.besideRivals(v, pod, slot); r.filter >= 0 {
		return r
	}
	return v.rejects(slot)
}

func (e *Engine) besideRivals(v *view, pod *Pod, slot int32) rejection {
	if len(e.rivals(pod, slot)) == 0 {
		return rejection{filter: -1}
	}
	skipped := v.skipped()
	mark := e.addRivals(pod, slot)
	v.follow()
	r := v.rejectsBut(slot, skipped)
	e.ledger.Rollback(mark)
	v.follow()
	return r
}

// skipped has one bit for each filter that has nothing to say as things are.
func (v *view) skipped() (mask uint64) {
	for i := range v.filters {
		if s, ok := v.filters[i].Filter.(plugin.Skipper); ok && s.Skips() {
			mask |= 1 << i
		}
	}
	return mask
}

// addRivals starts a what-if with the pods nominated to a node that the given one has to leave room for.
func (e *Engine) addRivals(pod *Pod, slot int32) ledger.Mark {
	mark := e.ledger.Mark()
	for _, rival := range e.rivals(pod, slot) {
		rival := *rival
		e.ledger.AddPod(&rival, e.ledger.NodeName(slot))
	}
	return mark
}

func (e *Engine) rivals(pod *Pod, slot int32) []*ledger.Pod {
	var out []*ledger.Pod
	for _, nominee := range e.Nominees(e.ledger.NodeName(slot)) {
		if rivals(nominee, pod) {
			out = append(out, nominee)
		}
	}
	return out
}

// tryNominated looks at the pod's nominated node alone: if it takes the pod, no other is asked.
func (e *Engine) tryNominated(v *view, pod *Pod) (int32, bool) {
	if pod.Nominated == "" || v.restriction().refused {
		return ledger.None, false
	}
	slot, known := e.ledger.Slot(pod.Nominated)
	if !known {
		return ledger.None, false
	}
	if _, code := v.ask(slot); code != plugin.Pass || !e.fitsBeside(v, pod, slot) {
		return ledger.None, false
	}
	return slot, true
}
