// Package balancedallocation is the plugin NodeResourcesBalancedAllocation: of two nodes that is better on which the pod
// brings the use of CPU and memory closer together, so that neither is used up while the other lies idle.
package balancedallocation

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// Name is the plugin's name in configurations.
const Name = "NodeResourcesBalancedAllocation"

// Plugin scores by balance.
type Plugin struct {
	// Resources are those balanced, CPU and memory if empty. They all weigh the same.
	Resources []v1.ResourceName

	// now is the balance of each node as it is: the same for every shape that asks for it.
	now present
}

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

// NewScore implements plugin.ScorePlugin. A pod that requests none of the resources changes no balance.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	names := p.Resources
	if len(names) == 0 {
		names = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}
	}
	b := &score{ledger: l, parts: make([]float64, 0, len(names))}
	asks := false
	for _, name := range names {
		index := l.Shapes.Resources.Index(name)
		amount := s.Request(index)
		asks = asks || amount > 0
		if amount > 0 || index <= shape.EphemeralStorage {
			b.requests = append(b.requests, shape.Request{Resource: index, Amount: amount})
		}
	}
	if !asks {
		return nil
	}
	if len(b.requests) == 2 {
		return newPair(p, b)
	}
	return b
}

// score balances any number of resources.
type score struct {
	ledger   *ledger.Ledger
	requests []shape.Request
	parts    []float64
}

func (s *score) Node(slot int32) int64 { return rate(s.balance(slot, true), s.balance(slot, false)) }

// rate is 50 for a pod that changes nothing, more if the balance is better with it than without.
func rate(with, without int64) int64 { return 50 + (50+with-without)/2 }

// balance is 100 for equal use of all resources, less the standard deviation of the parts in use.
func (s *score) balance(slot int32, with bool) int64 {
	parts, total := s.parts[:0], 0.0
	for _, r := range s.requests {
		capacity := s.ledger.Allocatable(r.Resource)[slot]
		if capacity == 0 {
			continue
		}
		used := s.ledger.Requested(r.Resource)[slot]
		if with {
			used += r.Amount
		}
		part := min(float64(used)/float64(capacity), 1)
		parts = append(parts, part)
		total += part
	}
	return int64((1 - deviation(parts, total)) * plugin.MaxScore)
}

func deviation(parts []float64, total float64) float64 {
	switch len(parts) {
	case 0, 1:
		return 0
	case 2:
		return math.Abs((parts[0] - parts[1]) / 2)
	}
	mean, squares := total/float64(len(parts)), 0.0
	for _, part := range parts {
		squares += (part - mean) * (part - mean)
	}
	return math.Sqrt(squares / float64(len(parts)))
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	plugin.ScoreColumn(s, nodes, weight, out)
}

func (s *score) Normalization() plugin.Normalization { return plugin.AsIs }
