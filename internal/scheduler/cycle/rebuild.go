package cycle

import (
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// rebuild asks the local filters and scores about all nodes, a column at a time.
func (v *view) rebuild() {
	n := v.ledger.Slots()
	v.dirtyList = v.dirtyList[:0]
	v.dirty = zeroed(v.dirty, ledger.Words(n))
	v.base = resize(v.base, n)
	v.filterAll(n)
	v.scoreAll(n)
	v.ready = true
}

// blockWords is how many words of nodes, of 64 each, filters and scores that can do so take at a time.
const blockWords = 8

// blocked returns how many of the local filters are asked about all nodes at once; the rest, and the scores that can,
// are asked block by block.
func (v *view) blocked() int {
	n := len(v.filters)
	for n > 0 {
		_, ok := v.filters[n-1].Filter.(plugin.BlockFilter)
		if !ok && !v.filters[n-1].global {
			break
		}
		n--
	}
	return n
}

// byBlock asks the filters from the given one on, and the scores that can, block by block.
func (v *view) byBlock(from int, reject func(filter int, slot int32, code plugin.Code)) {
	asked := 0
	fail := func(slot int32, code plugin.Code) { reject(asked, slot, code) }
	for lo := 0; lo < len(v.pass); lo += blockWords {
		hi := min(lo+blockWords, len(v.pass))
		for i := from; i < len(v.filters); i++ {
			if f, ok := v.filters[i].Filter.(plugin.BlockFilter); ok {
				asked = i
				f.Block(v.pass, lo, hi, fail)
			}
		}
		clear(v.base[lo<<6 : min(hi<<6, len(v.base))])
		for i := range v.scores {
			s := &v.scores[i]
			if b, ok := s.Score.(plugin.BlockScore); ok {
				b.Block(v.pass, lo, hi, s.weight, v.base)
			}
		}
		for i := lo; i < hi; i++ {
			exclude(v.pass[i], block(v.base, i))
		}
	}
}

func (v *view) filterAll(n int) {
	v.verdicts.reset()
	v.verdict = zeroed(v.verdict, n)
	v.pass = append(v.pass[:0], v.ledger.Live...)
	reject := func(filter int, slot int32, code plugin.Code) {
		number := v.verdicts.number(filter, code)
		v.verdict[slot] = number
		v.verdicts.count[number]++
	}
	whole := v.blocked()
	for i := range v.filters[:whole] {
		if f := &v.filters[i]; !f.global {
			f.Column(v.pass, func(slot int32, code plugin.Code) { reject(i, slot, code) })
		}
	}
	v.byBlock(whole, reject)
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
	for i := range v.scores {
		s := &v.scores[i]
		if _, done := s.Score.(plugin.BlockScore); !done && !s.global && s.rule == plugin.AsIs {
			s.Column(v.pass, s.weight, v.base)
		}
	}
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
	nodes.Each(func(slot int32) {
		raw := s.raw[slot]
		if raw > s.top {
			s.top, s.topped = raw, 0
		}
		if raw == s.top {
			s.topped++
		}
	})
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
		copy(v.total, v.base)
		for i := range v.scores {
			if s := &v.scores[i]; s.raw != nil {
				addNormalised(v.pass, s.raw, s.weight, s.rule, s.top, v.total)
			}
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

// exclude sets the values of a block's nodes that are not in its word to infeasible.
func exclude(word uint64, values []int64) {
	for rest := ^word; rest != 0; rest &= rest - 1 {
		if j := bits.TrailingZeros64(rest); j < len(values) {
			values[j] = infeasible
		}
	}
}

// zeroed returns the list with length n and all zeros.
func zeroed[L ~[]T, T any](list L, n int) L {
	list = resize(list, n)
	clear(list)
	return list
}
