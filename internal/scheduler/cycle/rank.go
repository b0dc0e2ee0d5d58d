package cycle

import (
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// scratch is the working space of a decision, used again by the next one.
type scratch struct {
	pass       ledger.Bitmap
	total, raw []int64
	order      []int32
}

// best scores the feasible nodes and returns one with the highest total, and that total.
func (e *Engine) best(v *view, pass ledger.Bitmap, count int) (int32, int64) {
	offset := e.rank(v, pass, count)
	total := e.scratch.total
	if e.options.Oracle {
		slot := e.firstOfHeap(pass, total)
		return slot, total[slot] + offset
	}
	top, ties := int64(infeasible), int32(0)
	for i, word := range pass {
		for ; word != 0; word &= word - 1 {
			switch value := total[i<<6+bits.TrailingZeros64(word)]; {
			case value > top:
				top, ties = value, 1
			case value == top:
				ties++
			}
		}
	}
	return pickAmong(pass, total, top, e.lot(ties)), top + offset
}

func pickAmong(pass ledger.Bitmap, total []int64, top int64, k int32) int32 {
	for i, word := range pass {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + bits.TrailingZeros64(word)
			if total[slot] != top {
				continue
			}
			if k == 0 {
				return int32(slot)
			}
			k--
		}
	}
	return ledger.None
}

// rank fills scratch.total for the feasible nodes, but for an offset that all of them get and that it returns.
func (e *Engine) rank(v *view, pass ledger.Bitmap, count int) (offset int64) {
	e.scratch.total = resize(e.scratch.total, e.ledger.Slots())
	total := e.scratch.total
	if v.fresh() {
		copy(total, v.base)
	} else {
		pass.Each(func(slot int32) { total[slot] = 0 })
		for i := range v.scores {
			if s := &v.scores[i]; s.rule == plugin.AsIs && !s.global {
				s.Column(pass, s.weight, total)
			}
		}
	}
	for i := range v.scores {
		if s := &v.scores[i]; s.global || s.rule != plugin.AsIs {
			offset += e.addScore(v, s, pass, count)
		}
	}
	return offset
}

// addScore adds a score that is normalised over the feasible nodes. If it is the same for all of them it is returned
// instead.
func (e *Engine) addScore(v *view, s *boundScore, pass ledger.Bitmap, count int) (offset int64) {
	if p, ok := s.Score.(plugin.Preparer); ok && !p.Prepare(pass, count) {
		return 0
	}
	raw := s.raw
	if f, ok := s.Score.(plugin.Flatness); ok && f.Flat() {
		raw = nil
	} else if s.global || !v.fresh() {
		e.scratch.raw = zeroed(e.scratch.raw, len(e.scratch.total))
		raw = e.scratch.raw
		s.Column(pass, 1, raw)
	}
	if raw == nil {
		return s.weight * normalised(s.rule, 0, 0)
	}
	if n, own := s.Score.(plugin.Normalizer); own {
		n.Normalize(pass, raw)
		e.accumulate(pass, raw, s.weight)
		return 0
	}
	top := highest(pass, raw)
	if top == 0 {
		return s.weight * normalised(s.rule, 0, 0)
	}
	addNormalised(pass, raw, s.weight, s.rule, top, e.scratch.total)
	return 0
}

// tabled is up to which highest raw score the normalised ones are computed once each instead of once a node.
const tabled = 1023

// addNormalised adds weighted normalised scores to totals.
func addNormalised(pass ledger.Bitmap, raw []int64, weight int64, rule plugin.Normalization, top int64, total []int64) {
	var table [tabled + 1]int64
	if top <= tabled {
		for value := range table[:top+1] {
			table[value] = weight * normalised(rule, int64(value), top)
		}
	}
	for i, word := range pass {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + bits.TrailingZeros64(word)
			if value := raw[slot]; top <= tabled {
				total[slot] += table[value]
			} else {
				total[slot] += weight * normalised(rule, value, top)
			}
		}
	}
}

func (e *Engine) accumulate(pass ledger.Bitmap, raw []int64, weight int64) {
	total := e.scratch.total
	for i, word := range pass {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + bits.TrailingZeros64(word)
			total[slot] += weight * raw[slot]
		}
	}
}

func highest(pass ledger.Bitmap, raw []int64) (top int64) {
	for i, word := range pass {
		for ; word != 0; word &= word - 1 {
			top = max(top, raw[i<<6+bits.TrailingZeros64(word)])
		}
	}
	return top
}

// firstOfHeap returns the node that kube-scheduler picks among equals: the first maximum in the pre-order of the binary
// heap over the feasible nodes in its order.
func (e *Engine) firstOfHeap(pass ledger.Bitmap, total []int64) int32 {
	list := e.scratch.order[:0]
	top := int64(infeasible)
	for _, slot := range e.ledger.ReferenceOrder() {
		if pass.Has(slot) {
			list = append(list, slot)
			top = max(top, total[slot])
		}
	}
	e.scratch.order = list
	var walk func(i int) int32
	walk = func(i int) int32 {
		if i >= len(list) {
			return ledger.None
		}
		if total[list[i]] == top {
			return list[i]
		}
		if found := walk(2*i + 1); found != ledger.None {
			return found
		}
		return walk(2*i + 2)
	}
	return walk(0)
}
