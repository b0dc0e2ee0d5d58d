package shape

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector is a label selector that first looks at one label which it asks for, if there is one: that turns down nearly
// all pods that it does not select for the price of one look.
type Selector struct {
	labels.Selector
	key, value string
	paired     bool
}

// NewSelector finds the label to look at first.
func NewSelector(s labels.Selector) *Selector {
	out := &Selector{Selector: s}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				out.key, out.value, out.paired = r.Key(), values[0], true
				return out
			}
		}
	}
	return out
}

// Selects reports whether the selector selects labels.
func (s *Selector) Selects(set labels.Set) bool {
	if s.paired {
		if value, ok := set[s.key]; !ok || value != s.value {
			return false
		}
	}
	return s.Selector.Matches(set)
}

// Pair returns a label and value that everything selected has, if the selector asks for one.
func (s *Selector) Pair() (key, value string, ok bool) { return s.key, s.value, s.paired }
