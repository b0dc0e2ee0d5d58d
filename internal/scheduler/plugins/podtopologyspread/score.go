package podtopologyspread

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// score prefers nodes in domains with few matching pods. A domain of many (hosts) weighs more than one of few (zones), by
// the logarithm of their number, so that neither drowns the other.
type score struct {
	*counts
	weights []float64
	seen    ledger.Bitmap
}

// Prepare finds the weight of each constraint: how many domains the feasible nodes make.
func (s *score) Prepare(nodes ledger.Bitmap, count int) bool {
	s.weights = s.weights[:0]
	scored := count
	if s.needAll {
		scored = s.countScored(nodes)
	}
	for i := range s.list {
		domains := scored
		if !s.list[i].host {
			domains = s.domains(&s.list[i], nodes)
		}
		s.weights = append(s.weights, math.Log(float64(domains+2)))
	}
	return true
}

// ignored reports whether a node is not scored because it lacks a key.
func (s *score) ignored(slot int32) bool {
	if !s.needAll {
		return false
	}
	for i := range s.list {
		if s.list[i].column.Value[slot] == 0 {
			return true
		}
	}
	return false
}

func (s *score) countScored(nodes ledger.Bitmap) (n int) {
	nodes.Each(func(slot int32) {
		if !s.ignored(slot) {
			n++
		}
	})
	return n
}

// domains counts the values that the scored nodes have. Nodes without the key, where they are scored, are one domain.
func (s *score) domains(con *constraint, nodes ledger.Bitmap) (n int) {
	words := ledger.Words(con.column.Len())
	for len(s.seen) < words {
		s.seen = append(s.seen, 0)
	}
	clear(s.seen)
	for i, word := range nodes {
		for ; word != 0; word &= word - 1 {
			slot := int32(i<<6 + trailing(word))
			if value := con.column.Value[slot]; !s.seen.Has(value) && !s.ignored(slot) {
				s.seen.Set(value)
				n++
			}
		}
	}
	return n
}

func (s *score) Node(slot int32) int64 {
	if s.ignored(slot) {
		return 0
	}
	var sum float64
	for i := range s.list {
		con := &s.list[i]
		value := con.column.Value[slot]
		if value == 0 {
			continue
		}
		pods := con.pods[value]
		if con.host {
			pods = con.perNode[slot]
		}
		sum += float64(pods)*s.weights[i] + float64(con.MaxSkew-1)
	}
	return round(sum)
}

// round rounds a number that is not negative, halves up.
func round(x float64) int64 {
	n := int64(x)
	if x-float64(n) >= 0.5 {
		n++
	}
	return n
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	plugin.ScoreColumn(s, nodes, weight, out)
}

func (s *score) Normalization() plugin.Normalization { return plugin.Own }

// Normalize implements plugin.Normalizer: the fewer pods the better. Nodes that lack a key get 0 and set no mark.
func (s *score) Normalize(nodes ledger.Bitmap, scores []int64) {
	least, most := int64(math.MaxInt64), int64(0)
	nodes.Each(func(slot int32) {
		if !s.ignored(slot) {
			least, most = min(least, scores[slot]), max(most, scores[slot])
		}
	})
	nodes.Each(func(slot int32) {
		switch {
		case s.ignored(slot):
			scores[slot] = 0
		case most == 0:
			scores[slot] = plugin.MaxScore
		default:
			scores[slot] = plugin.MaxScore * (most + least - scores[slot]) / most
		}
	})
}
