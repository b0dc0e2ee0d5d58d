package nodeaffinity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Advise implements plugin.Advisor: which labels would have to be others. The distance is their number; among
// alternatives the nearest counts.
func (f *filter) Advise(slot int32) plugin.Advice {
	var wrong []string
	for _, selector := range []*shape.NodeSelector{f.added, f.own} {
		if selector != nil {
			wrong = append(wrong, f.wrong(selector.All, slot)...)
			wrong = append(wrong, f.nearestTerm(selector, slot)...)
		}
	}
	return plugin.Advice{Detail: strings.Join(wrong, ", "), Distance: float64(len(wrong))}
}

// nearestTerm tells what is wrong with the alternative that fits best.
func (f *filter) nearestTerm(s *shape.NodeSelector, slot int32) []string {
	if !s.HasTerms {
		return nil
	}
	nearest := []string{"no alternative of the required node affinity can ever match"}
	found := false
	for i := range s.Terms {
		term := &s.Terms[i]
		if term.Nothing {
			continue
		}
		wrong := f.wrong(term.Labels, slot)
		for j := range term.Fields {
			if field := &term.Fields[j]; !field.Matches(f.ledger.NodeName(slot), true) {
				wrong = append(wrong, fmt.Sprintf("the node's name is not %s %v", field.Operator, field.Values))
			}
		}
		if !found || len(wrong) < len(nearest) {
			nearest, found = wrong, true
		}
	}
	return nearest
}

func (f *filter) wrong(requirements []shape.NodeRequirement, slot int32) (wrong []string) {
	labels := f.ledger.Labels(slot)
	for i := range requirements {
		r := &requirements[i]
		value, present := labels[r.Key]
		if r.Matches(value, present) {
			continue
		}
		have := "missing"
		if present {
			have = fmt.Sprintf("%q", value)
		}
		wrong = append(wrong, strings.TrimSpace(fmt.Sprintf("label %s is %s, not %s %s", r.Key, have, r.Operator, list(r.Values))))
	}
	return wrong
}

func list(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("[%s]", strings.Join(slices.Sorted(slices.Values(values)), ", "))
}
