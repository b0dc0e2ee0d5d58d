package cycle

import "math"

// infeasible is the total of a node that cannot take the pod.
const infeasible = math.MinInt64

// tree finds the highest totals without looking at all of them: for each block of 64 nodes, and each block of 64 such
// blocks, it keeps the maximum and how often it occurs. A change of one node looks at two blocks at most.
type tree struct {
	low, high []peak
}

type peak struct {
	top   int64
	count int32
}

func peakOf(values []int64) peak {
	p := peak{top: infeasible}
	for _, value := range values {
		if value > p.top {
			p = peak{top: value, count: 1}
		} else if value == p.top && value != infeasible {
			p.count++
		}
	}
	return p
}

func peakOver(peaks []peak) peak {
	p := peak{top: infeasible}
	for _, q := range peaks {
		if q.top > p.top {
			p = q
		} else if q.top == p.top {
			p.count += q.count
		}
	}
	return p
}

func block[T any](list []T, i int) []T { return list[i<<6 : min(i<<6+64, len(list))] }

func blocks(n int) int { return (n + 63) >> 6 }

// build starts over from all totals.
func (t *tree) build(totals []int64) {
	t.low = resize(t.low, blocks(len(totals)))
	for i := range t.low {
		t.low[i] = peakOf(block(totals, i))
	}
	t.high = resize(t.high, blocks(len(t.low)))
	for i := range t.high {
		t.high[i] = peakOver(block(t.low, i))
	}
}

// update takes note that the total of one node has changed.
func (t *tree) update(totals []int64, slot int32, old int64) {
	i := int(slot >> 6)
	value, p := totals[slot], &t.low[i]
	if old < p.top && value < p.top {
		return
	}
	*p = peakOf(block(totals, i))
	t.high[i>>6] = peakOver(block(t.low, i>>6))
}

// peak returns the highest total and how many nodes have it.
func (t *tree) peak() peak { return peakOver(t.high) }

// pick returns the k-th node, from 0, that has the highest total.
func (t *tree) pick(totals []int64, top int64, k int32) int32 {
	i, k := skip(t.high, 0, top, k)
	i, k = skip(block(t.low, i), i<<6, top, k)
	return pickFrom(totals, i<<6, min(i<<6+64, len(totals)), top, k)
}

// skip finds the block in which the k-th maximum lies, and its number k there.
func skip(peaks []peak, base int, top int64, k int32) (int, int32) {
	for i, p := range peaks {
		if p.top != top {
			continue
		}
		if k < p.count {
			return base + i, k
		}
		k -= p.count
	}
	panic("cycle: tree of maxima out of step with its totals")
}

func pickFrom(totals []int64, from, to int, top int64, k int32) int32 {
	for slot := from; slot < to; slot++ {
		if totals[slot] != top {
			continue
		}
		if k == 0 {
			return int32(slot)
		}
		k--
	}
	panic("cycle: tree of maxima out of step with its totals")
}

// resize returns the list with length n; what is in it is not cleared.
func resize[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n, n+n/8)
	}
	return list[:n]
}
