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
	// scored are the feasible nodes that do not lack a key which they must have.
	scored ledger.Bitmap
	seen   ledger.Bitmap
}

// Prepare finds the weight of each constraint: how many domains the feasible nodes make.
func (s *score) Prepare(nodes ledger.Bitmap, count int) bool {
	s.scored = append(s.scored[:0], nodes...)
	if s.needAll {
		for i := range s.list {
			keepWithKey(s.scored, s.list[i].column.Value)
		}
		count = s.scored.Count()
	}
	s.weights = s.weights[:0]
	for i := range s.list {
		domains := count
		if !s.list[i].host {
			domains = s.domains(&s.list[i])
		}
		s.weights = append(s.weights, math.Log(float64(domains+2)))
	}
	return true
}

// domains counts the values that the scored nodes have. Nodes without the key, where they are scored, are one domain.
func (s *score) domains(con *constraint) (n int) {
	words := ledger.Words(con.column.Len())
	for len(s.seen) < words {
		s.seen = append(s.seen, 0)
	}
	clear(s.seen)
	seen, values := s.seen, con.column.Value
	for i, word := range s.scored {
		for ; word != 0; word &= word - 1 {
			value := values[i<<6+trailing(word)]
			if bit := uint64(1) << (value & 63); seen[value>>6]&bit == 0 {
				seen[value>>6] |= bit
				n++
			}
		}
	}
	return n
}

// podsAt returns how many matching pods there are near a node with the given value of the key.
func (con *constraint) podsAt(slot, value int32) int32 {
	if con.host {
		return con.perNode[slot]
	}
	return con.pods[value]
}

func (s *score) Node(slot int32) int64 {
	if !s.scored.Has(slot) {
		return 0
	}
	var sum float64
	for i := range s.list {
		con := &s.list[i]
		value := con.column.Value[slot]
		if value == 0 {
			continue
		}
		sum += float64(con.podsAt(slot, value))*s.weights[i] + float64(con.MaxSkew-1)
	}
	return round(sum)
}

// Column adds up constraint by constraint, in the order of Node, which matters to how sums are rounded.
func (s *score) Column(_ ledger.Bitmap, weight int64, out []int64) {
	sums := s.plugin.floats(len(out))
	for i := range s.list {
		con := &s.list[i]
		values, pods, w, extra := con.column.Value, con.pods, s.weights[i], float64(con.MaxSkew-1)
		for i, word := range s.scored {
			for ; word != 0; word &= word - 1 {
				slot := i<<6 + trailing(word)
				value := values[slot]
				switch {
				case value == 0:
				case con.host:
					sums[slot] += float64(con.perNode[slot])*w + extra
				default:
					sums[slot] += float64(pods[value])*w + extra
				}
			}
		}
	}
	for i, word := range s.scored {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + trailing(word)
			out[slot] += weight * round(sums[slot])
		}
	}
}

// round rounds a number that is not negative, halves up.
func round(x float64) int64 {
	n := int64(x)
	if x-float64(n) >= 0.5 {
		n++
	}
	return n
}

func (s *score) Normalization() plugin.Normalization { return plugin.Own }

// Normalize implements plugin.Normalizer: the fewer pods the better. Nodes that lack a key get 0 and set no mark.
func (s *score) Normalize(nodes ledger.Bitmap, scores []int64) {
	least, most := int64(math.MaxInt64), int64(0)
	for i, word := range s.scored {
		for ; word != 0; word &= word - 1 {
			value := scores[i<<6+trailing(word)]
			least, most = min(least, value), max(most, value)
		}
	}
	for i, word := range nodes {
		for ; word != 0; word &= word - 1 {
			slot := i<<6 + trailing(word)
			switch {
			case s.scored[i]&(word&-word) == 0:
				scores[slot] = 0
			case most == 0:
				scores[slot] = plugin.MaxScore
			default:
				scores[slot] = plugin.MaxScore * (most + least - scores[slot]) / most
			}
		}
	}
}
