package ledger

import v1 "k8s.io/api/core/v1"

// taintSets numbers the different sets of taints that nodes have: a cluster has few. Set 0 is the empty one.
type taintSets struct {
	sets  [][]v1.Taint
	index map[string]int32
	key   []byte
}

func newTaintSets() taintSets {
	return taintSets{sets: [][]v1.Taint{nil}, index: map[string]int32{"": 0}}
}

// intern numbers a list of taints. The order counts, because it decides which taint is named; the time does not.
func (t *taintSets) intern(taints []v1.Taint) int32 {
	t.key = t.key[:0]
	for i := range taints {
		for _, s := range [...]string{taints[i].Key, taints[i].Value, string(taints[i].Effect)} {
			t.key = append(append(t.key, s...), 0)
		}
	}
	if set, ok := t.index[string(t.key)]; ok {
		return set
	}
	set := int32(len(t.sets))
	t.sets = append(t.sets, taints)
	t.index[string(t.key)] = set
	return set
}

// TaintSets returns the number of sets of taints seen.
func (l *Ledger) TaintSets() int { return len(l.taints.sets) }

// Taints returns the taints of a set.
func (l *Ledger) Taints(set int32) []v1.Taint { return l.taints.sets[set] }
