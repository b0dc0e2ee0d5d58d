package cycle

import "github.com/bayplan/bayplan/internal/scheduler/plugin"

// refresh brings the local verdicts and totals up to date. More than one changed node in four is as good as all.
func (v *view) refresh() {
	if !v.ready || len(v.dirtyList) > len(v.verdict)/4+16 {
		v.rebuild()
		return
	}
	flat := true
	for _, slot := range v.dirtyList {
		v.dirty.Clear(slot)
		flat = v.reask(slot) && flat
	}
	v.dirtyList = v.dirtyList[:0]
	if !flat {
		v.renormalise()
	}
}

// fresh reports whether verdicts and totals are those of now.
func (v *view) fresh() bool { return v.ready && len(v.dirtyList) == 0 }

// reask asks all local filters and scores about one node. It returns false if a maximum by which scores are normalised
// is another one now, so that all totals change.
func (v *view) reask(slot int32) (steady bool) {
	old, oldTotal := v.verdict[slot], v.total[slot]
	now := v.judge(slot)
	v.verdicts.count[old]--
	v.verdicts.count[now]++
	v.verdict[slot] = now
	v.pass.Put(slot, now == 0)
	steady = true
	base := int64(infeasible)
	if now == 0 {
		base = 0
	}
	for i := range v.scores {
		s := &v.scores[i]
		if s.global {
			continue
		}
		if s.rule == plugin.AsIs {
			if now == 0 {
				base += s.weight * s.Node(slot)
			}
			continue
		}
		steady = v.rerate(s, slot, old == 0, now == 0) && steady
	}
	if old == 0 {
		v.feasible--
	}
	if now == 0 {
		v.feasible++
	}
	v.base[slot] = base
	if steady {
		v.retotal(slot, oldTotal)
	}
	return steady
}

// rerate replaces the raw score of one node and reports whether the highest one is the same as before.
func (v *view) rerate(s *boundScore, slot int32, was, is bool) (steady bool) {
	raw := int64(0)
	if is {
		raw = s.Node(slot)
	}
	if s.raw == nil {
		return raw == 0
	}
	if was && s.raw[slot] == s.top {
		s.topped--
	}
	s.raw[slot] = raw
	if is && raw == s.top {
		s.topped++
	}
	return !(is && raw > s.top) && (s.topped > 0 || s.top == 0)
}

// retotal recomputes one node's total after its base or raw scores have changed.
func (v *view) retotal(slot int32, old int64) {
	if !v.flat {
		v.total[slot] = v.totalOf(slot)
	}
	if v.treed {
		v.tree.update(v.total, slot, old)
	}
}

func (v *view) totalOf(slot int32) int64 {
	total := v.base[slot]
	if total == infeasible {
		return total
	}
	for i := range v.scores {
		if s := &v.scores[i]; s.raw != nil {
			total += s.weight * normalised(s.rule, s.raw[slot], s.top)
		}
	}
	return total
}

// judge asks the local filters about one node.
func (v *view) judge(slot int32) uint16 {
	if !v.ledger.Live.Has(slot) {
		return dead
	}
	for i := range v.filters {
		if v.filters[i].global {
			continue
		}
		if code := v.filters[i].Node(slot); code != plugin.Pass {
			return v.verdicts.number(i, code)
		}
	}
	return 0
}
