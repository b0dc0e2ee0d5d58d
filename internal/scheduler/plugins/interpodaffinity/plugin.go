// Package interpodaffinity is the plugin InterPodAffinity: a pod goes near to pods that its affinity terms select, and
// not near to those that its anti-affinity terms select, nor to those whose anti-affinity terms select it. "Near" means
// the same value of a topology key (the same host, the same zone).
//
// For each shape the plugin keeps, per topology key, one number for each value: what the pods there are worth to a pod of
// the shape. Which numbers a pod of some other shape changes is found out once per pair of shapes; after that a pod that
// comes or goes costs a few additions.
package interpodaffinity

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "InterPodAffinity"

// The reasons for which nodes are rejected.
const (
	ReasonAffinity     = "node(s) didn't match pod affinity rules"
	ReasonAntiAffinity = "node(s) didn't match pod anti-affinity rules"
	ReasonExisting     = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// Plugin filters and scores by the pods that are near.
type Plugin struct {
	// HardPodAffinityWeight is what a pod counts whose required affinity selects the new one.
	HardPodAffinityWeight int64
	// IgnorePreferredTermsOfExistingPods leaves the terms of other pods out of the score of pods without such terms.
	IgnorePreferredTermsOfExistingPods bool

	pool plugin.Pool
}

// New returns the plugin with its default arguments.
func New() *Plugin { return &Plugin{HardPodAffinityWeight: 1} }

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin. Even a pod without terms can be rejected by those of others.
func (p *Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	f := &filter{}
	f.tally = newTally(p, l, s, f.effect)
	f.keys(s.Affinity, &f.affinity)
	f.keys(s.AntiAffinity, &f.anti)
	if len(s.Affinity) > 0 {
		f.first = matchesAll(l, s.Affinity, s.Class)
	}
	f.reach = append(f.reach, s.Affinity...)
	f.reach = append(f.reach, s.AntiAffinity...)
	return f
}

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	own := len(s.PreferredAffinity)+len(s.PreferredAntiAffinity) > 0
	if p.IgnorePreferredTermsOfExistingPods && !own {
		return nil
	}
	rated := &score{}
	rated.tally = newTally(p, l, s, rated.effect)
	for _, list := range [...][]shape.WeightedTerm{s.PreferredAffinity, s.PreferredAntiAffinity} {
		for _, term := range list {
			rated.reach = append(rated.reach, term.Term)
		}
	}
	return rated
}

func matches(l *ledger.Ledger, t *shape.Term, class *shape.Class) bool {
	return t.Matches(class, l.Namespace(class.Namespace))
}

func matchesAll(l *ledger.Ledger, terms []*shape.Term, class *shape.Class) bool {
	for _, t := range terms {
		if !matches(l, t, class) {
			return false
		}
	}
	return len(terms) > 0
}
