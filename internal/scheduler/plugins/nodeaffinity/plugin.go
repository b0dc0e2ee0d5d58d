// Package nodeaffinity is the plugin NodeAffinity: a pod goes only to nodes that its nodeSelector and required node
// affinity select, and rather to those that its preferred terms select.
package nodeaffinity

import (
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "NodeAffinity"

// The reasons for which nodes are rejected.
const (
	Reason         = "node(s) didn't match Pod's node affinity/selector"
	ReasonEnforced = "node(s) didn't match scheduler-enforced node affinity"
	ReasonConflict = "pod affinity terms conflict"
)

// Plugin filters and scores by node labels.
type Plugin struct {
	// Added and AddedPreferred are the affinity that the configuration adds to every pod.
	Added          *shape.NodeSelector
	AddedPreferred []shape.PreferredNode
}

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

const (
	notSelected plugin.Code = iota + 1
	notEnforced
)

// NewFilter implements plugin.FilterPlugin.
func (p *Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	if s.Node == nil && p.Added == nil {
		return nil
	}
	return &filter{ledger: l, added: p.Added, own: s.Node}
}

type filter struct {
	ledger     *ledger.Ledger
	added, own *shape.NodeSelector
}

func (f *filter) Node(slot int32) plugin.Code {
	if !Matches(f.ledger, f.added, slot) {
		return notEnforced
	}
	if !Matches(f.ledger, f.own, slot) {
		return notSelected
	}
	return plugin.Pass
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	if f.added != nil {
		keep(pass, Select(f.ledger, f.added), notEnforced, fail)
	}
	if f.own != nil {
		keep(pass, Select(f.ledger, f.own), notSelected, fail)
	}
}

func keep(pass, selected ledger.Bitmap, code plugin.Code, fail func(int32, plugin.Code)) {
	for i, word := range selected {
		for failed := pass[i] &^ word; failed != 0; failed &= failed - 1 {
			fail(int32(i<<6+bits.TrailingZeros64(failed)), code)
		}
		pass[i] &= word
	}
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	if code == notEnforced {
		return plugin.Reject(Name, plugin.Unresolvable, ReasonEnforced)
	}
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}

// Restrict implements plugin.Restrictor: a pod whose every alternative names nodes, as those of DaemonSets do.
func (f *filter) Restrict() (names []string, ok bool) { return f.own.Names() }

// Refuse implements plugin.Refuser: every alternative names several nodes at once.
func (f *filter) Refuse() (status plugin.Status, ok bool) {
	names, named := f.own.Names()
	if !named || len(names) > 0 {
		return plugin.Status{}, false
	}
	return plugin.Reject(Name, plugin.Unresolvable, ReasonConflict), true
}

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	if len(s.Preferred)+len(p.AddedPreferred) == 0 {
		return nil
	}
	return &score{ledger: l, own: s.Preferred, added: p.AddedPreferred}
}

type score struct {
	ledger     *ledger.Ledger
	own, added []shape.PreferredNode
}

func (s *score) Node(slot int32) int64 {
	return s.sum(s.own, slot) + s.sum(s.added, slot)
}

func (s *score) sum(list []shape.PreferredNode, slot int32) (sum int64) {
	for i := range list {
		if termMatches(s.ledger, &list[i].Term, slot) {
			sum += list[i].Weight
		}
	}
	return sum
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	for _, list := range [...][]shape.PreferredNode{s.own, s.added} {
		for i := range list {
			worth := weight * list[i].Weight
			selectTerm(s.ledger, &list[i].Term, nodes).Each(func(slot int32) { out[slot] += worth })
		}
	}
}

func (s *score) Normalization() plugin.Normalization { return plugin.ByMax }
