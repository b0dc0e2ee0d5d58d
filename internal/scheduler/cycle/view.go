package cycle

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// view is what is known of one shape: for every node the verdict of the local filters and the total of the local scores.
type view struct {
	ledger   *ledger.Ledger
	shape    *shape.Shape
	used     uint64
	position uint64
	opened   revision
	// stirred is when, by the engine's clock, what followers count last changed.
	stirred uint64

	filters []boundFilter
	scores  []boundScore
	// followers are the filters and scores that count pods elsewhere.
	followers []plugin.Follower
	stalers   []plugin.Staler

	// verdict is, per slot, 0 for feasible or the number of an entry of verdicts; dead marks slots without a node.
	verdict  []uint16
	verdicts verdictTable
	pass     ledger.Bitmap
	feasible int

	// base is the sum of the scores that are not normalised; total adds the normalised ones, or is base itself while
	// those are the same for all nodes.
	base, total, ownTotal []int64
	flat                  bool
	tree                  tree
	treed                 bool

	dirty     ledger.Bitmap
	dirtyList []int32
	ready     bool
}

// open makes the view one of a shape. Nothing is computed yet.
func (v *view) open(l *ledger.Ledger, p *Profile, s *shape.Shape) {
	v.ledger, v.shape, v.ready = l, s, false
	v.filters = bindFilters(l, p, s, v.filters)
	v.scores = bindScores(l, p, s, v.scores)
	v.followers, v.stalers = v.followers[:0], v.stalers[:0]
	for i := range v.filters {
		v.enlist(v.filters[i].Filter)
	}
	for i := range v.scores {
		v.enlist(v.scores[i].Score)
	}
	for _, f := range v.followers {
		f.Build()
	}
	v.position, v.opened = l.Position(), v.revision()
}

func (v *view) enlist(part any) {
	if f, ok := part.(plugin.Follower); ok {
		v.followers = append(v.followers, f)
	}
	if s, ok := part.(plugin.Staler); ok {
		v.stalers = append(v.stalers, s)
	}
}

// busy reports whether pods elsewhere matter to the shape as things are.
func (v *view) busy() bool {
	for _, f := range v.followers {
		if idler, ok := f.(plugin.Idler); !ok || !idler.Idle() {
			return true
		}
	}
	return false
}

// close gives back what filters and scores hold.
func (v *view) close() {
	for i := range v.filters {
		if r, ok := v.filters[i].Filter.(plugin.Releaser); ok {
			r.Release()
		}
	}
	for i := range v.scores {
		if r, ok := v.scores[i].Score.(plugin.Releaser); ok {
			r.Release()
		}
	}
}

// revision is of what decides which filters and scores there are and what they select.
type revision struct{ namespaces, selectors, storage uint64 }

func (v *view) revision() revision {
	r := revision{namespaces: v.ledger.NamespaceRevision(), selectors: v.ledger.SelectorRevision(v.shape.Class.Namespace)}
	if len(v.shape.Claims) > 0 {
		r.storage = v.ledger.Storage.Revision()
	}
	return r
}

// follow reads the journal: followers count, changed nodes are noted. It reports whether what followers count has changed.
func (v *view) follow() (stirred bool) {
	var before uint64
	for _, f := range v.followers {
		before += f.Version()
	}
	rebuild := make([]bool, 0, 8)
	for range v.followers {
		rebuild = append(rebuild, false)
	}
	complete := v.ledger.Since(v.position, func(c *ledger.Change) {
		v.note(c)
		for i, f := range v.followers {
			if !rebuild[i] && !f.Apply(c) {
				rebuild[i] = true
			}
		}
	})
	v.position = v.ledger.Position()
	if !complete {
		v.ready = false
	}
	for i, f := range v.followers {
		if rebuild[i] || !complete {
			f.Build()
			stirred = true
		}
	}
	for _, s := range v.stalers {
		if s.Stale() {
			v.ready = false
		}
	}
	for _, f := range v.followers {
		before -= f.Version()
	}
	return stirred || before != 0
}

// note marks the node of a change, to be asked again.
func (v *view) note(c *ledger.Change) {
	if !v.ready {
		return
	}
	if n := v.ledger.Slots(); n > len(v.verdict) {
		v.grow(n)
	}
	if !v.dirty.Has(c.Slot) {
		v.dirty.Set(c.Slot)
		v.dirtyList = append(v.dirtyList, c.Slot)
	}
}

// grow adds the slots of new nodes, to be asked.
func (v *view) grow(n int) {
	for slot := len(v.verdict); slot < n; slot++ {
		v.verdict = append(v.verdict, dead)
		v.base = append(v.base, infeasible)
		v.verdicts.count[dead]++
		if !v.flat {
			v.ownTotal = append(v.ownTotal, infeasible)
		}
		for i := range v.scores {
			if v.scores[i].raw != nil {
				v.scores[i].raw = append(v.scores[i].raw, 0)
			}
		}
	}
	v.total = v.ownTotal
	if v.flat {
		v.total = v.base
	}
	for len(v.pass) < ledger.Words(n) {
		v.pass, v.dirty = append(v.pass, 0), append(v.dirty, 0)
	}
	v.treed = false
}
