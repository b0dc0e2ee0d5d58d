// Package cycle decides where a pod goes.
//
//	Pod, its shape ──► view of the shape: each node's verdict and score, as far as they depend on that node alone
//	                     │  the ledger's journal tells which nodes have changed; only those are asked again
//	                     ▼
//	                   filters and scores that count pods elsewhere; nominated pods; the best node, ties by lot
//	                     ▼
//	                   Decision: a slot, or the reasons, node by node
//
// A shape that is known and depends on nothing elsewhere is answered from its tree of maxima without looking at the
// nodes. A new shape costs one pass over the columns per plugin. Bayplan looks at every node in every decision; there is
// no sampling.
//
// The Engine belongs to the goroutine that owns the ledger.
package cycle

import (
	"math/rand/v2"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// WeightedScore is a score plugin and what it counts in the total.
type WeightedScore struct {
	plugin.ScorePlugin
	Weight int64
}

// Profile is the plugins of one scheduler name, in the order in which they are asked.
type Profile struct {
	Filters []plugin.FilterPlugin
	Scores  []WeightedScore
	// Preemption makes room for pods by evicting others; nil if the plugin DefaultPreemption is not enabled.
	Preemption *Preemption
}

// Options are how an Engine decides.
type Options struct {
	// Seed starts the generator that breaks ties: equal seeds and events give equal decisions.
	Seed uint64
	// Oracle breaks ties as kube-scheduler does without extenders: the first maximum in the pre-order of a binary heap
	// over the feasible nodes in its order of nodes.
	Oracle bool
}

// viewMemory bounds what views may hold, in bytes.
const viewMemory = 64 << 20

// Engine makes the decisions of one profile.
type Engine struct {
	ledger  *ledger.Ledger
	profile Profile
	options Options
	random  *rand.Rand

	views   map[*shape.Shape]*view
	clock   uint64
	scratch scratch
	spare   []*view
	nominee nominations
}

// New returns an engine over a ledger.
func New(l *ledger.Ledger, profile Profile, options Options) *Engine {
	return &Engine{
		ledger: l, profile: profile, options: options,
		random: rand.New(rand.NewPCG(options.Seed, options.Seed^0x9e3779b97f4a7c15)),
		views:  map[*shape.Shape]*view{},
	}
}

// view returns what is known of a shape, up to date with the journal.
func (e *Engine) view(s *shape.Shape) *view {
	e.clock++
	v := e.views[s]
	if v == nil {
		v = e.newView(s)
		e.views[s] = v
	} else if v.opened != v.revision() {
		v.close()
		v.open(e.ledger, &e.profile, s)
		v.stirred = e.clock
	}
	v.used = e.clock
	if v.follow() {
		v.stirred = e.clock
	}
	return v
}

// newView makes room for one more view. The arrays of the view that was not used for the longest time are used again.
func (e *Engine) newView(s *shape.Shape) *view {
	perView := max(20*e.ledger.Slots(), 1<<10)
	limit := max(8, min(viewMemory/perView, 1024))
	if len(e.views) >= limit {
		var oldest *view
		for _, v := range e.views {
			if oldest == nil || v.used < oldest.used {
				oldest = v
			}
		}
		e.Forget(oldest.shape)
	}
	v := &view{}
	if n := len(e.spare); n > 0 {
		v, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	v.open(e.ledger, &e.profile, s)
	v.stirred = e.clock
	return v
}

// Forget drops what is known of a shape.
func (e *Engine) Forget(s *shape.Shape) {
	if v := e.views[s]; v != nil {
		delete(e.views, s)
		v.close()
		e.spare = append(e.spare, v)
	}
}
