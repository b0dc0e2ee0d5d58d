package noderesourcesfit

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// Type is a scoring strategy.
type Type string

// The strategies.
const (
	LeastAllocated           Type = "LeastAllocated"
	MostAllocated            Type = "MostAllocated"
	RequestedToCapacityRatio Type = "RequestedToCapacityRatio"
)

// Strategy says how nodes are rated. The zero value is LeastAllocated over CPU and memory.
type Strategy struct {
	Type      Type
	Resources []Weight
	// Points is the curve of RequestedToCapacityRatio, by rising utilisation.
	Points []Point
}

// Weight is what a resource counts.
type Weight struct {
	Name   v1.ResourceName
	Weight int64
}

// Point is one point of a curve: at this utilisation (0 to 100) that score (0 to 10).
type Point struct{ Utilization, Score int64 }

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	resources := p.Strategy.Resources
	if len(resources) == 0 {
		resources = []Weight{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}}
	}
	rated := &score{ledger: l, strategy: p.Strategy}
	for _, w := range resources {
		if r := newRated(l, s, w); r != nil {
			rated.resources = append(rated.resources, *r)
		}
	}
	if p.Strategy.Type == LeastAllocated || p.Strategy.Type == "" {
		return least(rated)
	}
	return rated
}

// rated is one resource that counts: what this pod adds, and the columns of what is there.
type rated struct {
	weight   int64
	amount   int64
	resource int
	// scoring tells that the column with defaults for missing requests is meant.
	scoring bool
}

// newRated returns nil for an extended resource that the pod does not request: it does not count.
func newRated(l *ledger.Ledger, s *shape.Shape, w Weight) *rated {
	index := l.Shapes.Resources.Index(w.Name)
	if index == shape.CPU || index == shape.Memory {
		return &rated{weight: w.Weight, amount: s.Scoring[index], resource: index, scoring: true}
	}
	amount := s.Request(index)
	if amount == 0 && index != shape.EphemeralStorage {
		return nil
	}
	return &rated{weight: w.Weight, amount: amount, resource: index}
}

func (r *rated) columns(l *ledger.Ledger) (requested, allocatable []int64) {
	if r.scoring {
		return l.Scoring[r.resource], l.Allocatable(r.resource)
	}
	return l.Requested(r.resource), l.Allocatable(r.resource)
}

// score rates by any strategy, node by node.
type score struct {
	ledger    *ledger.Ledger
	strategy  Strategy
	resources []rated
}

func (s *score) Node(slot int32) int64 {
	var sum, weights int64
	for i := range s.resources {
		r := &s.resources[i]
		requested, allocatable := r.columns(s.ledger)
		capacity := allocatable[slot]
		if capacity == 0 {
			continue
		}
		part := s.strategy.Rate(requested[slot]+r.amount, capacity)
		if part == 0 && s.strategy.Type == RequestedToCapacityRatio {
			continue
		}
		sum += part * r.weight
		weights += r.weight
	}
	if weights == 0 {
		return 0
	}
	if s.strategy.Type == RequestedToCapacityRatio {
		return int64(math.Round(float64(sum) / float64(weights)))
	}
	return sum / weights
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	plugin.ScoreColumn(s, nodes, weight, out)
}

func (s *score) Normalization() plugin.Normalization { return plugin.AsIs }

// Rate returns 0 to 100 for one resource of which requested of capacity would be in use. By RequestedToCapacityRatio
// nothing is full.
func (s *Strategy) Rate(requested, capacity int64) int64 {
	switch s.Type {
	case MostAllocated:
		return min(requested, capacity) * plugin.MaxScore / capacity
	case RequestedToCapacityRatio:
		if capacity == 0 || requested > capacity {
			return s.at(100)
		}
		return s.at(requested * 100 / capacity)
	}
	if requested > capacity {
		return 0
	}
	return (capacity - requested) * plugin.MaxScore / capacity
}

// at reads the curve, straight between its points, level outside of them.
func (s *Strategy) at(utilization int64) int64 {
	const scale = plugin.MaxScore / 10
	for i, point := range s.Points {
		if utilization > point.Utilization {
			continue
		}
		if i == 0 {
			return point.Score * scale
		}
		before := s.Points[i-1]
		rise, run := (point.Score-before.Score)*scale, point.Utilization-before.Utilization
		return before.Score*scale + rise*(utilization-before.Utilization)/run
	}
	return s.Points[len(s.Points)-1].Score * scale
}
