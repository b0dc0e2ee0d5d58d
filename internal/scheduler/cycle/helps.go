package cycle

import (
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Helps reports whether what has just changed on a node could let a pod be placed that the given plugins rejected: the
// node takes it now, or would if pods of lower priority were gone, or one of the plugins counts pods elsewhere too and
// what it counts has changed since seen, which Helps moves on. A slot of ledger.None stands for a change that is not one
// node's.
func (e *Engine) Helps(s *shape.Shape, priority int32, rejectors []string, slot int32, seen *uint64) bool {
	v := e.view(s)
	if v.stirred != *seen {
		*seen = v.stirred
		for i := range v.filters {
			if f := &v.filters[i]; f.global && slices.Contains(rejectors, f.name) {
				return true
			}
		}
	}
	if slot == ledger.None || !e.ledger.Live.Has(slot) {
		return false
	}
	f, code := v.ask(slot)
	if code == plugin.Pass {
		return true
	}
	return f.Explain(code).Verdict == plugin.Unschedulable && e.hasLower(slot, priority)
}

// Seen is the mark for Helps of a shape that has just been decided on.
func (e *Engine) Seen(s *shape.Shape) uint64 { return e.view(s).stirred }

// hasLower reports whether a pod of lower priority runs on the node.
func (e *Engine) hasLower(slot int32, priority int32) bool {
	return slices.ContainsFunc(e.ledger.NodePods(slot), func(p *ledger.Pod) bool { return p.Priority < priority })
}
