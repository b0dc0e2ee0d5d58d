package nodeaffinity

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Matches tests one node against a selector; nil matches every node.
func Matches(l *ledger.Ledger, s *shape.NodeSelector, slot int32) bool {
	if s == nil {
		return true
	}
	labels := l.Labels(slot)
	if !all(s.All, labels) {
		return false
	}
	if !s.HasTerms {
		return true
	}
	for i := range s.Terms {
		if termMatches(l, &s.Terms[i], slot) {
			return true
		}
	}
	return false
}

func termMatches(l *ledger.Ledger, t *shape.NodeTerm, slot int32) bool {
	if t.Nothing || !all(t.Labels, l.Labels(slot)) {
		return false
	}
	for i := range t.Fields {
		if !t.Fields[i].Matches(l.NodeName(slot), true) {
			return false
		}
	}
	return true
}

func all(requirements []shape.NodeRequirement, labels map[string]string) bool {
	for i := range requirements {
		value, present := labels[requirements[i].Key]
		if !requirements[i].Matches(value, present) {
			return false
		}
	}
	return true
}

// Select returns the nodes that a selector, which must not be nil, matches.
func Select(l *ledger.Ledger, s *shape.NodeSelector) ledger.Bitmap {
	out := append(ledger.Bitmap(nil), l.Live...)
	for i := range s.All {
		narrow(l, &s.All[i], out)
	}
	if !s.HasTerms {
		return out
	}
	some := make(ledger.Bitmap, len(out))
	for i := range s.Terms {
		for j, word := range selectTerm(l, &s.Terms[i], out) {
			some[j] |= word
		}
	}
	return some
}

// selectTerm returns the nodes among from that a term matches.
func selectTerm(l *ledger.Ledger, t *shape.NodeTerm, from ledger.Bitmap) ledger.Bitmap {
	out := make(ledger.Bitmap, len(from))
	if t.Nothing {
		return out
	}
	copy(out, from)
	for i := range t.Labels {
		narrow(l, &t.Labels[i], out)
	}
	for i := range t.Fields {
		out.Each(func(slot int32) {
			if !t.Fields[i].Matches(l.NodeName(slot), true) {
				out.Clear(slot)
			}
		})
	}
	return out
}

// narrow keeps the nodes that meet a requirement: each value of the label is tested once, then nodes look theirs up.
func narrow(l *ledger.Ledger, r *shape.NodeRequirement, nodes ledger.Bitmap) {
	column := l.Label(r.Key)
	table := make([]uint8, column.Len())
	for value := range table {
		if value == 0 && r.Matches("", false) || value > 0 && r.Matches(column.Name(int32(value)), true) {
			table[value] = 1
		}
	}
	for i := range nodes {
		if nodes[i] == 0 {
			continue
		}
		var word uint64
		for j, value := range column.Value[i<<6 : min(i<<6+64, len(column.Value))] {
			word |= uint64(table[value]) << j
		}
		nodes[i] &= word
	}
}
