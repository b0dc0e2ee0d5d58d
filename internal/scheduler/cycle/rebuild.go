package cycle

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// rebuild asks the local filters and scores about all nodes, a column at a time.
func (v *view) rebuild() {
	n := v.ledger.Slots()
	v.dirtyList = v.dirtyList[:0]
	v.dirty = zeroed(v.dirty, ledger.Words(n))
	v.filterAll(n)
	v.scoreAll(n)
	v.ready = true
}

func (v *view) filterAll(n int) {
	v.verdicts.reset()
	v.verdict = zeroed(v.verdict, n)
	v.pass = append(v.pass[:0], v.ledger.Live...)
	for i := range v.filters {
		if v.filters[i].global {
			continue
		}
		v.filters[i].Column(v.pass, func(slot int32, code plugin.Code) {
			number := v.verdicts.number(i, code)
			v.verdict[slot] = number
			v.verdicts.count[number]++
		})
	}
	v.feasible = v.pass.Count()
	v.verdicts.count[0] = int32(v.feasible)
	v.verdicts.count[dead] = int32(n - v.ledger.Nodes())
	if v.ledger.Nodes() == n {
		return
	}
	for slot := range v.verdict {
		if !v.ledger.Live.Has(int32(slot)) {
			v.verdict[slot] = dead
		}
	}
}

func (v *view) scoreAll(n int) {
	v.base = zeroed(v.base, n)
	for i := range v.scores {
		if s := &v.scores[i]; !s.global && s.rule == plugin.AsIs {
			s.Column(v.pass, s.weight, v.base)
		}
	}
	exclude(v.pass, v.base)
	for i := range v.scores {
		if s := &v.scores[i]; !s.global && s.rule != plugin.AsIs {
			s.rate(v.pass, n)
		}
	}
	v.totalAll()
}

// rate fills the raw scores of a score that is normalised, or drops them if they are all 0.
func (s *boundScore) rate(nodes ledger.Bitmap, n int) {
	if f, ok := s.Score.(plugin.Flatness); ok && f.Flat() {
		s.raw, s.top, s.topped = nil, 0, 0
		return
	}
	s.raw = zeroed(s.spare, n)
	s.spare = s.raw
	s.Column(nodes, 1, s.raw)
	s.top, s.topped = 0, 0
	for _, raw := range s.raw {
		if raw > s.top {
			s.top, s.topped = raw, 0
		}
		if raw == s.top {
			s.topped++
		}
	}
	if s.top == 0 {
		s.raw = nil
	}
}

// renormalise is called when a maximum has changed: raw scores are kept, totals are computed again.
func (v *view) renormalise() {
	for i := range v.scores {
		if s := &v.scores[i]; !s.global && s.rule != plugin.AsIs {
			s.rate(v.pass, len(v.verdict))
		}
	}
	v.totalAll()
}

// totalAll computes all totals.
func (v *view) totalAll() {
	v.flat = true
	for i := range v.scores {
		v.flat = v.flat && v.scores[i].raw == nil
	}
	if v.flat {
		v.total = v.base
	} else {
		v.ownTotal = resize(v.ownTotal, len(v.base))
		v.total = v.ownTotal
		for slot := range v.total {
			v.total[slot] = v.totalOf(int32(slot))
		}
	}
	v.treed = false
}

// plant makes the tree if there is none. Views that never ask it do without.
func (v *view) plant() {
	if !v.treed {
		v.tree.build(v.total)
		v.treed = true
	}
}

// offset is what every node gets from scores that are the same for all.
func (v *view) offset() (sum int64) {
	for i := range v.scores {
		if s := &v.scores[i]; !s.global && s.raw == nil {
			sum += s.weight * normalised(s.rule, 0, 0)
		}
	}
	return sum
}

// exclude sets the values of all nodes that are not in the set to infeasible.
func exclude(nodes ledger.Bitmap, values []int64) {
	for i, word := range nodes {
		if word == ^uint64(0) {
			continue
		}
		part := block(values, i)
		for j := range part {
			if word&(1<<j) == 0 {
				part[j] = infeasible
			}
		}
	}
}

// zeroed returns the list with length n and all zeros.
func zeroed[L ~[]T, T any](list L, n int) L {
	list = resize(list, n)
	clear(list)
	return list
}
