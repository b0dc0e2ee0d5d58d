// Package podtopologyspread is the plugin PodTopologySpread: the pods that a constraint selects are spread evenly over
// the domains of a topology key (zones, nodes), strictly (DoNotSchedule) or as far as possible (ScheduleAnyway).
//
// What is counted is kept per shape and follows the ledger's journal: how many pods a domain has, and which nodes count.
// A pod that comes or goes changes one number.
package podtopologyspread

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// Name is the plugin's name in configurations.
const Name = "PodTopologySpread"

// The reasons for which nodes are rejected.
const (
	Reason           = "node(s) didn't match pod topology spread constraints"
	ReasonMissingKey = "node(s) didn't match pod topology spread constraints (missing required label)"
)

// Plugin filters and scores by topology spread constraints.
type Plugin struct {
	// Defaults are the constraints of pods that have none of their own but belong together with others through a Service
	// or a controller; their selectors are not used. SystemDefaults tells that they are the built-in ones: nodes then
	// need not have all of the keys.
	Defaults       []shape.SpreadConstraint
	SystemDefaults bool

	pool plugin.Pool
	// sums is working space.
	sums []float64
}

// floats returns n zeros.
func (p *Plugin) floats(n int) []float64 {
	if cap(p.sums) < n {
		p.sums = make([]float64, n, n+n/8)
	}
	p.sums = p.sums[:n]
	clear(p.sums)
	return p.sums
}

// New returns the plugin with the built-in defaults: at most 3 more pods on one node, 5 more in one zone, as far as
// possible.
func New() *Plugin {
	return &Plugin{SystemDefaults: true, Defaults: []shape.SpreadConstraint{
		{MaxSkew: 3, TopologyKey: v1.LabelHostname, MinDomains: 1, HonorAffinity: true},
		{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, MinDomains: 1, HonorAffinity: true},
	}}
}

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

// constraints returns those of a shape that are hard, or those that are not.
func (p *Plugin) constraints(l *ledger.Ledger, s *shape.Shape, hard bool) []shape.SpreadConstraint {
	var out []shape.SpreadConstraint
	for _, c := range s.Spread {
		if c.Hard == hard {
			out = append(out, c)
		}
	}
	if len(s.Spread) > 0 || len(p.Defaults) == 0 {
		return out
	}
	siblings := l.Siblings(s)
	if siblings.Empty() {
		return nil
	}
	for _, c := range p.Defaults {
		if c.Hard == hard {
			c.Selector = shape.NewSelector(siblings)
			out = append(out, c)
		}
	}
	return out
}

// NewFilter implements plugin.FilterPlugin.
func (p *Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	constraints := p.constraints(l, s, true)
	if len(constraints) == 0 {
		return nil
	}
	return &filter{counts: newCounts(p, l, s, constraints, true, true)}
}

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	constraints := p.constraints(l, s, false)
	if len(constraints) == 0 {
		return nil
	}
	all := len(s.Spread) > 0 || !p.SystemDefaults
	return &score{counts: newCounts(p, l, s, constraints, false, all)}
}
