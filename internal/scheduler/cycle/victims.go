package cycle

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// candidate is a node on which removing the victims would make room.
type candidate struct {
	slot       int32
	victims    []*ledger.Pod
	violations int
}

// victimsOn finds the fewest and least important pods of a node whose removal lets the pod in, or tells why there are
// none.
func (e *Engine) victimsOn(v *view, pod *Pod, slot int32) (*candidate, *plugin.Status) {
	var lower []*ledger.Pod
	for _, other := range e.ledger.NodePods(slot) {
		if other.Priority < pod.Priority {
			lower = append(lower, other)
		}
	}
	if len(lower) == 0 {
		return nil, &plugin.Status{Reasons: []string{reasonNoVictims}}
	}
	slices.SortFunc(lower, moreImportant)
	mark := e.ledger.Mark()
	defer func() {
		e.ledger.Rollback(mark)
		v.follow()
	}()
	for _, victim := range lower {
		e.ledger.RemovePod(victim)
	}
	if status := e.rejected(v, pod, slot); status != nil {
		return nil, status
	}
	return e.reprieve(v, pod, slot, lower), nil
}

// reprieve puts back as many pods as possible: first those whose budget would be violated, the more important ones
// before the others. Those that cannot stay are the victims.
func (e *Engine) reprieve(v *view, pod *Pod, slot int32, lower []*ledger.Pod) *candidate {
	c := &candidate{slot: slot}
	node := e.ledger.NodeName(slot)
	violating := e.ledger.Violating(lower)
	for _, first := range []bool{true, false} {
		for i, victim := range lower {
			if violating[i] != first {
				continue
			}
			e.ledger.AddPod(victim, node)
			if e.rejected(v, pod, slot) == nil {
				continue
			}
			e.ledger.RemovePod(victim)
			c.victims = append(c.victims, victim)
			if first {
				c.violations++
			}
		}
	}
	slices.SortFunc(c.victims, moreImportant)
	return c
}

// rejected tells why a node does not take the pod beside those nominated to it, nil if it does.
func (e *Engine) rejected(v *view, pod *Pod, slot int32) *plugin.Status {
	v.follow()
	r := e.rejection(v, pod, slot)
	if r.filter < 0 {
		return nil
	}
	status := v.filters[r.filter].Explain(r.code)
	return &status
}

// moreImportant orders pods by priority, then by how long they have run.
func moreImportant(a, b *ledger.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Started, b.Started), strings.Compare(string(a.UID), string(b.UID)))
}

// leastHarm chooses among candidates: the fewest violated budgets, the lowest highest priority, the lowest sum of
// priorities, the fewest pods, the latest start of the pod that has run longest; then by lot.
func (e *Engine) leastHarm(candidates []candidate) *candidate {
	compare := func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.violations, b.violations), cmp.Compare(a.highest(), b.highest()), cmp.Compare(a.sum(), b.sum()),
			cmp.Compare(len(a.victims), len(b.victims)), cmp.Compare(b.earliest(), a.earliest()),
		)
	}
	best := []*candidate{&candidates[0]}
	for i := 1; i < len(candidates); i++ {
		switch c := compare(&candidates[i], best[0]); {
		case c < 0:
			best = append(best[:0], &candidates[i])
		case c == 0:
			best = append(best, &candidates[i])
		}
	}
	return best[e.lot(int32(len(best)))]
}

// highest is the priority of the most important victim. A node that needs none is the best of all.
func (c *candidate) highest() int64 {
	if len(c.victims) == 0 {
		return math.MinInt64
	}
	return int64(c.victims[0].Priority)
}

// sum adds up priorities, each raised so that a negative one still counts as harm.
func (c *candidate) sum() (sum int64) {
	for _, victim := range c.victims {
		sum += int64(victim.Priority) + math.MaxInt32 + 1
	}
	return sum
}

// earliest is when the first of the most important victims started.
func (c *candidate) earliest() int64 {
	earliest := int64(math.MaxInt64)
	for _, victim := range c.victims {
		if victim.Priority == c.victims[0].Priority {
			earliest = min(earliest, victim.Started)
		}
	}
	return earliest
}
