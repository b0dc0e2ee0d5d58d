package interpodaffinity

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// role is what a counter is for.
type role int

const (
	// existing counts the terms of anti-affinity of other pods that select the new one.
	existing role = iota
	// anti counts the pods that the new one's anti-affinity selects.
	anti
	// affinity counts the pods that all of the new one's affinity terms select.
	affinity
	// worth adds up weights.
	worth
)

// counter is one number for each value of a topology key.
type counter struct {
	role   role
	column *ledger.LabelColumn
	values []int32
	// sum of the absolute changes tells whether there is anything in the counter.
	pods int
}

// step is what one pod on a node changes: the counter, and by how much.
type step struct {
	counter int
	amount  int32
}

// tally keeps the counters of one shape up to date.
type tally struct {
	plugin   *Plugin
	ledger   *ledger.Ledger
	shape    *shape.Shape
	counters []counter
	// reach are the shape's own terms: the pods that they select count.
	reach []*shape.Term
	// effect finds the steps for a pod of another shape; effects remembers them if there are any.
	effect  func(*shape.Shape) []step
	effects map[*shape.Shape][]step
	version uint64
}

func newTally(p *Plugin, l *ledger.Ledger, s *shape.Shape, effect func(*shape.Shape) []step) tally {
	return tally{plugin: p, ledger: l, shape: s, effect: effect}
}

// counter returns the number of the counter for a role and key, and makes it if there is none.
func (t *tally) counter(r role, key string) int {
	for i := range t.counters {
		if t.counters[i].role == r && t.counters[i].column.Key == key {
			return i
		}
	}
	column := t.ledger.Label(key)
	t.counters = append(t.counters, counter{role: r, column: column, values: t.plugin.pool.Get(nil, column.Len())})
	return len(t.counters) - 1
}

// Build counts from nothing.
func (t *tally) Build() {
	t.effects = map[*shape.Shape][]step{}
	for i := range t.counters {
		c := &t.counters[i]
		c.values, c.pods = t.plugin.pool.Get(c.values, c.column.Len()), 0
	}
	seen := map[*ledger.Group]bool{}
	count := func(group *ledger.Group) {
		if steps := t.stepsOf(group.Shape); len(steps) > 0 && !seen[group] {
			seen[group] = true
			for _, slot := range group.Slots {
				t.take(steps, max(slot, ^slot), 1)
			}
		}
	}
	t.ledger.EachHolder(t.shape.Class, count)
	t.eachReached(count)
}

// eachReached calls do for the groups among which those are that the shape's own terms select.
func (t *tally) eachReached(do func(*ledger.Group)) {
	for _, term := range t.reach {
		if term.NamespaceSelector != nil {
			t.ledger.EachGroup(do)
			return
		}
	}
	for _, term := range t.reach {
		for _, namespace := range term.Namespaces {
			for _, group := range t.ledger.GroupsIn(namespace) {
				do(group)
			}
		}
	}
}

// stepsOf returns what a pod of a shape changes.
func (t *tally) stepsOf(s *shape.Shape) []step {
	if len(t.reach) == 0 && !s.HasTerms() {
		return nil
	}
	steps, known := t.effects[s]
	if !known {
		if steps = t.effect(s); len(steps) > 0 {
			t.effects[s] = steps
		}
	}
	return steps
}

// take counts one pod on a node, or takes it away.
func (t *tally) take(steps []step, slot int32, sign int32) {
	for _, each := range steps {
		c := &t.counters[each.counter]
		if value := c.column.Value[slot]; value != 0 {
			c.values[value] += sign * each.amount
			c.pods += int(sign)
			t.version++
		}
	}
}

// Apply counts one change. Pods that are being deleted count as before.
func (t *tally) Apply(change *ledger.Change) bool {
	if change.Shape == nil {
		return change.Kind&ledger.NodeSet == 0
	}
	if change.Kind == ledger.PodTerminating {
		return true
	}
	steps := t.stepsOf(change.Shape)
	for _, each := range steps {
		c := &t.counters[each.counter]
		if int(c.column.Value[change.Slot]) >= len(c.values) {
			return false
		}
	}
	sign := int32(1)
	if change.Kind == ledger.PodRemoved {
		sign = -1
	}
	t.take(steps, change.Slot, sign)
	return true
}

// Version implements plugin.Follower.
func (t *tally) Version() uint64 { return t.version }

// Release gives the counters back.
func (t *tally) Release() {
	for i := range t.counters {
		t.plugin.pool.Put(t.counters[i].values)
		t.counters[i].values = nil
	}
	t.counters = nil
}

// empty reports whether no pod counts anywhere.
func (t *tally) empty() bool {
	for i := range t.counters {
		if t.counters[i].pods != 0 {
			return false
		}
	}
	return true
}
