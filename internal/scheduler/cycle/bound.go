package cycle

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// boundFilter is a filter plugin for one shape, and its place in the order of the profile.
type boundFilter struct {
	plugin.Filter
	name  string
	order int
	// global tells that the filter is a Follower: its word on a node may change without a change of the node.
	global bool
}

// boundScore is a score plugin for one shape.
type boundScore struct {
	plugin.Score
	name   string
	weight int64
	rule   plugin.Normalization
	global bool

	// For local scores that are normalised by their maximum: the raw scores of feasible nodes, the highest, and how many
	// nodes have it.
	raw, spare  []int64
	top, topped int64
}

func bindFilters(l *ledger.Ledger, p *Profile, s *shape.Shape, out []boundFilter) []boundFilter {
	out = out[:0]
	for i, each := range p.Filters {
		if f := each.NewFilter(l, s); f != nil {
			_, global := f.(plugin.Follower)
			out = append(out, boundFilter{Filter: f, name: each.Name(), order: i, global: global})
		}
	}
	return out
}

// bindScores reuses the list and the arrays of another shape's scores.
func bindScores(l *ledger.Ledger, p *Profile, s *shape.Shape, old []boundScore) []boundScore {
	var spares [][]int64
	for i := range old {
		if old[i].spare != nil {
			spares = append(spares, old[i].spare)
		}
	}
	out := old[:0]
	for _, each := range p.Scores {
		if score := each.NewScore(l, s); score != nil {
			_, global := score.(plugin.Follower)
			bound := boundScore{
				Score: score, name: each.Name(), weight: each.Weight, rule: score.Normalization(), global: global,
			}
			if n := len(spares); n > 0 && !global && bound.rule != plugin.AsIs {
				bound.spare, spares = spares[n-1], spares[:n-1]
			}
			out = append(out, bound)
		}
	}
	return out
}

// normalised returns the normalised score for a raw one, given the highest.
func normalised(rule plugin.Normalization, raw, top int64) int64 {
	switch {
	case rule == plugin.ByMax && top > 0:
		return raw * plugin.MaxScore / top
	case rule == plugin.ByMaxReversed && top > 0:
		return plugin.MaxScore - raw*plugin.MaxScore/top
	case rule == plugin.ByMaxReversed:
		return plugin.MaxScore
	}
	return raw
}
