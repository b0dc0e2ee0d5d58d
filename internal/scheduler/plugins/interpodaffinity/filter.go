package interpodaffinity

import (
	"fmt"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

const (
	affinityUnmet plugin.Code = iota + 1
	antiAffinityMet
	existingMet
)

// filter rejects by required terms.
type filter struct {
	tally
	// affinity and anti are the topology keys of the shape's own terms.
	affinity, anti []*ledger.LabelColumn
	// first tells that the pod satisfies its own affinity: as long as there is no other, it may be the first.
	first bool
}

// keys lists the columns of the terms' topology keys.
func (f *filter) keys(terms []*shape.Term, out *[]*ledger.LabelColumn) {
	for _, t := range terms {
		*out = append(*out, f.ledger.Label(t.TopologyKey))
	}
}

// effect finds what a pod of another shape changes.
func (f *filter) effect(other *shape.Shape) (steps []step) {
	for _, t := range other.AntiAffinity {
		if matches(f.ledger, t, f.shape.Class) {
			steps = append(steps, step{f.counter(existing, t.TopologyKey), 1})
		}
	}
	for _, t := range f.shape.AntiAffinity {
		if matches(f.ledger, t, other.Class) {
			steps = append(steps, step{f.counter(anti, t.TopologyKey), 1})
		}
	}
	if matchesAll(f.ledger, f.shape.Affinity, other.Class) {
		for _, t := range f.shape.Affinity {
			steps = append(steps, step{f.counter(affinity, t.TopologyKey), 1})
		}
	}
	return steps
}

// Idle implements plugin.Idler.
func (f *filter) Idle() bool { return len(f.affinity) == 0 && f.empty() }

// Skips implements plugin.Skipper: the pod has no terms, and those of no other pod concern it.
func (f *filter) Skips() bool { return len(f.affinity)+len(f.anti) == 0 && f.empty() }

// alone reports whether no pod anywhere matches the shape's own affinity.
func (f *filter) alone() bool {
	for i := range f.counters {
		if f.counters[i].role == affinity && f.counters[i].pods != 0 {
			return false
		}
	}
	return true
}

func (f *filter) Node(slot int32) plugin.Code {
	if len(f.affinity) > 0 && !f.near(slot, f.first && f.alone()) {
		return affinityUnmet
	}
	if f.met(anti, slot) {
		return antiAffinityMet
	}
	if f.met(existing, slot) {
		return existingMet
	}
	return plugin.Pass
}

// near reports whether the node has the keys of all affinity terms, and pods that they select are near by each; the very
// first pod needs none.
func (f *filter) near(slot int32, first bool) bool {
	for _, column := range f.affinity {
		value := column.Value[slot]
		if value == 0 || !first && f.count(column, value) <= 0 {
			return false
		}
	}
	return true
}

func (f *filter) count(column *ledger.LabelColumn, value int32) int32 {
	for i := range f.counters {
		if c := &f.counters[i]; c.role == affinity && c.column == column {
			return c.values[value]
		}
	}
	return 0
}

func (f *filter) met(r role, slot int32) bool {
	for i := range f.counters {
		if c := &f.counters[i]; c.role == r && c.values[c.column.Value[slot]] > 0 {
			return true
		}
	}
	return false
}

// Column is in the order of Node: affinity, own anti-affinity, that of others.
func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	if len(f.affinity) > 0 {
		first := f.first && f.alone()
		pass.Each(func(slot int32) {
			if !f.near(slot, first) {
				pass.Clear(slot)
				fail(slot, affinityUnmet)
			}
		})
	}
	f.column(anti, antiAffinityMet, pass, fail)
	f.column(existing, existingMet, pass, fail)
}

func (f *filter) column(r role, code plugin.Code, pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	for i := range f.counters {
		c := &f.counters[i]
		if c.role != r || c.pods == 0 {
			continue
		}
		column, values := c.column.Value, c.values
		for i, word := range pass {
			for ; word != 0; word &= word - 1 {
				slot := int32(i<<6 + trailing(word))
				if values[column[slot]] > 0 {
					pass.Clear(slot)
					fail(slot, code)
				}
			}
		}
	}
}

// Advise implements plugin.Advisor: by which topology key, and how many pods are in the way. The distance is their number.
func (f *filter) Advise(slot int32) plugin.Advice {
	if f.Node(slot) == affinityUnmet {
		var keys []string
		for _, column := range f.affinity {
			keys = append(keys, column.Key)
		}
		return plugin.Advice{Detail: "no pod that the affinity selects is near by " + strings.Join(keys, ", "), Distance: 1}
	}
	var details []string
	total := int32(0)
	for i := range f.counters {
		c := &f.counters[i]
		value := c.column.Value[slot]
		if n := c.values[value]; n > 0 && c.role != affinity {
			who := "its anti-affinity selects are at"
			if c.role == existing {
				who = "do not want it near are at"
			}
			details = append(details, fmt.Sprintf("%d pods that %s %s %s", n, who, c.column.Key, c.column.Name(value)))
			total += n
		}
	}
	return plugin.Advice{Detail: strings.Join(details, ", "), Distance: float64(total)}
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	switch code {
	case affinityUnmet:
		return plugin.Reject(Name, plugin.Unresolvable, ReasonAffinity)
	case antiAffinityMet:
		return plugin.Reject(Name, plugin.Unschedulable, ReasonAntiAffinity)
	}
	return plugin.Reject(Name, plugin.Unschedulable, ReasonExisting)
}
