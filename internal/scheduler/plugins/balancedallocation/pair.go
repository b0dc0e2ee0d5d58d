package balancedallocation

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// present is the balance of two resources on every node without the pod in question. It follows the journal.
type present struct {
	ledger        *ledger.Ledger
	first, second int
	position      uint64
	balance       []int8
}

// of returns the column, up to date.
func (p *present) of(l *ledger.Ledger, first, second int) []int8 {
	if p.ledger != l || p.first != first || p.second != second {
		*p = present{ledger: l, first: first, second: second, balance: p.balance[:0]}
	}
	known := len(p.balance)
	for len(p.balance) < l.Slots() {
		p.balance = append(p.balance, 0)
	}
	complete := known > 0 && l.Since(p.position, func(c *ledger.Change) {
		if int(c.Slot) < known {
			p.compute(c.Slot)
		}
	})
	if !complete {
		known = 0
	}
	for slot := known; slot < len(p.balance); slot++ {
		p.compute(int32(slot))
	}
	p.position = l.Position()
	return p.balance
}

func (p *present) compute(slot int32) {
	l := p.ledger
	p.balance[slot] = int8(balanceOf(l.Requested(p.first)[slot], l.Allocatable(p.first)[slot],
		l.Requested(p.second)[slot], l.Allocatable(p.second)[slot]))
}

// pairScore balances two resources in one pass.
type pairScore struct {
	*score
	now           *present
	first, second shape.Request
}

func newPair(p *Plugin, s *score) plugin.Score {
	return &pairScore{score: s, now: &p.now, first: s.requests[0], second: s.requests[1]}
}

func (s *pairScore) Node(slot int32) int64 {
	l := s.ledger
	used1, all1 := l.Requested(s.first.Resource)[slot], l.Allocatable(s.first.Resource)[slot]
	used2, all2 := l.Requested(s.second.Resource)[slot], l.Allocatable(s.second.Resource)[slot]
	return rate(balanceOf(used1+s.first.Amount, all1, used2+s.second.Amount, all2), balanceOf(used1, all1, used2, all2))
}

func (s *pairScore) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	s.Block(nodes, 0, len(nodes), weight, out)
}

// Block implements plugin.BlockScore.
func (s *pairScore) Block(nodes ledger.Bitmap, from, to int, weight int64, out []int64) {
	l := s.ledger
	lo, hi := from<<6, min(to<<6, len(out))
	out = out[lo:hi]
	now := s.now.of(l, s.first.Resource, s.second.Resource)[lo:hi]
	used1, all1 := l.Requested(s.first.Resource)[lo:hi], l.Allocatable(s.first.Resource)[lo:hi]
	used2, all2 := l.Requested(s.second.Resource)[lo:hi], l.Allocatable(s.second.Resource)[lo:hi]
	add1, add2 := s.first.Amount, s.second.Amount
	for i, all := range all1 {
		out[i] += weight * rate(balanceOf(used1[i]+add1, all, used2[i]+add2, all2[i]), int64(now[i]))
	}
}

// balanceOf is balance for two resources. Without one of them a node is always in balance.
func balanceOf(used1, all1, used2, all2 int64) int64 {
	if all1 == 0 || all2 == 0 {
		return plugin.MaxScore
	}
	part1, part2 := float64(used1)/float64(all1), float64(used2)/float64(all2)
	if part1 > 1 {
		part1 = 1
	}
	if part2 > 1 {
		part2 = 1
	}
	return int64((1 - math.Abs((part1-part2)/2)) * plugin.MaxScore)
}
