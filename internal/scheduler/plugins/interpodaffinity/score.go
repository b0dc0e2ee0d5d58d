package interpodaffinity

import (
	"math"
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// score adds up what pods near by are worth by preferred terms, the new pod's and theirs.
type score struct{ tally }

// effect finds what a pod of another shape changes.
func (s *score) effect(other *shape.Shape) (steps []step) {
	own, theirs := s.shape, other
	steps = s.weigh(steps, own.PreferredAffinity, other.Class, 1)
	steps = s.weigh(steps, own.PreferredAntiAffinity, other.Class, -1)
	if s.plugin.HardPodAffinityWeight > 0 {
		for _, t := range theirs.Affinity {
			if matches(s.ledger, t, own.Class) {
				steps = append(steps, step{s.counter(worth, t.TopologyKey), int32(s.plugin.HardPodAffinityWeight)})
			}
		}
	}
	steps = s.weigh(steps, theirs.PreferredAffinity, own.Class, 1)
	return s.weigh(steps, theirs.PreferredAntiAffinity, own.Class, -1)
}

func (s *score) weigh(steps []step, terms []shape.WeightedTerm, class *shape.Class, sign int32) []step {
	for _, t := range terms {
		if matches(s.ledger, t.Term, class) {
			steps = append(steps, step{s.counter(worth, t.TopologyKey), sign * int32(t.Weight)})
		}
	}
	return steps
}

// Idle implements plugin.Idler.
func (s *score) Idle() bool { return s.empty() }

// Prepare implements plugin.Preparer.
func (s *score) Prepare(ledger.Bitmap, int) bool { return !s.empty() }

func (s *score) Node(slot int32) (sum int64) {
	for i := range s.counters {
		c := &s.counters[i]
		sum += int64(c.values[c.column.Value[slot]])
	}
	return sum
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	for i := range s.counters {
		column, values := s.counters[i].column.Value, s.counters[i].values
		for i, word := range nodes {
			for ; word != 0; word &= word - 1 {
				slot := i<<6 + trailing(word)
				out[slot] += weight * int64(values[column[slot]])
			}
		}
	}
}

func (s *score) Normalization() plugin.Normalization { return plugin.Own }

// Normalize implements plugin.Normalizer: from the lowest to the highest, rounded down; 0 for all if they are equal.
func (s *score) Normalize(nodes ledger.Bitmap, scores []int64) {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	nodes.Each(func(slot int32) { least, most = min(least, scores[slot]), max(most, scores[slot]) })
	span := float64(most - least)
	nodes.Each(func(slot int32) {
		if span > 0 {
			scores[slot] = int64(plugin.MaxScore * (float64(scores[slot]-least) / span))
		} else {
			scores[slot] = 0
		}
	})
}

func trailing(word uint64) int { return bits.TrailingZeros64(word) }
