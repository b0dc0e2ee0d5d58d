package cycle

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is a pod to be placed.
type Pod struct {
	UID      types.UID
	Shape    *shape.Shape
	Priority int32
	// Nominated is the node that preemption has made room on for this pod, if any.
	Nominated string
}

// Decision is where a pod goes.
type Decision struct {
	// Slot is the node chosen, ledger.None if no node can take the pod.
	Slot int32
	// Score is the node's total; 0 if there was no choice, so that nothing was scored.
	Score int64
	// Feasible is how many nodes could take the pod, Nodes how many there are. If the pod's nominated node took it, no
	// other was looked at.
	Feasible, Nodes int
}

// Decide chooses a node for a pod. The ledger is left as it is.
func (e *Engine) Decide(pod *Pod) Decision {
	none := Decision{Slot: ledger.None, Nodes: e.ledger.Nodes()}
	if none.Nodes == 0 {
		return none
	}
	v := e.view(pod.Shape)
	if slot, ok := e.tryNominated(v, pod); ok {
		return Decision{Slot: slot, Feasible: 1, Nodes: none.Nodes}
	}
	pass, count := e.feasible(v, pod)
	if count == 0 {
		return none
	}
	d := Decision{Feasible: count, Nodes: none.Nodes}
	switch {
	case count == 1 && pass == nil:
		d.Slot = v.tree.pick(v.total, v.tree.peak().top, 0)
	case count == 1:
		d.Slot = first(pass)
	case pass == nil && !e.options.Oracle:
		top := v.tree.peak()
		d.Slot = v.tree.pick(v.total, top.top, e.lot(top.count))
		d.Score = top.top + v.offset()
	default:
		if pass == nil {
			pass = append(e.scratch.pass[:0], v.pass...)
			e.scratch.pass = pass
		}
		d.Slot, d.Score = e.best(v, pass, count)
	}
	return d
}

// lot draws one of n.
func (e *Engine) lot(n int32) int32 {
	if n == 1 {
		return 0
	}
	return e.random.Int32N(n)
}

// feasible returns the nodes that pass all filters and their number. A nil set stands for the view's own: everything
// then depends on each node alone, and the tree knows the best.
func (e *Engine) feasible(v *view, pod *Pod) (ledger.Bitmap, int) {
	if r := v.restriction(); r.named {
		return e.feasibleAmong(v, pod, r.slots)
	}
	v.refresh()
	nominees := e.contested(pod)
	if !v.busy() && len(nominees) == 0 {
		v.plant()
		return nil, v.feasible
	}
	pass := append(e.scratch.pass[:0], v.pass...)
	e.scratch.pass = pass
	for i := range v.filters {
		if f := &v.filters[i]; f.global {
			f.Column(pass, func(int32, plugin.Code) {})
		}
	}
	for _, slot := range nominees {
		if pass.Has(slot) && !e.fitsBeside(v, pod, slot) {
			pass.Clear(slot)
		}
	}
	return pass, pass.Count()
}

// feasibleAmong asks only about the nodes that the pod names.
func (e *Engine) feasibleAmong(v *view, pod *Pod, slots []int32) (ledger.Bitmap, int) {
	e.scratch.pass = zeroed(e.scratch.pass, ledger.Words(e.ledger.Slots()))
	pass := e.scratch.pass
	count := 0
	for _, slot := range slots {
		if _, code := v.ask(slot); code == plugin.Pass && e.fitsBeside(v, pod, slot) {
			pass.Set(slot)
			count++
		}
	}
	return pass, count
}

// ask puts one node before all filters, in order, and returns the first that rejects it.
func (v *view) ask(slot int32) (*boundFilter, plugin.Code) {
	for i := range v.filters {
		if code := v.filters[i].Node(slot); code != plugin.Pass {
			return &v.filters[i], code
		}
	}
	return nil, plugin.Pass
}

func first(pass ledger.Bitmap) int32 {
	slot := ledger.None
	pass.Each(func(s int32) {
		if slot == ledger.None {
			slot = s
		}
	})
	return slot
}
