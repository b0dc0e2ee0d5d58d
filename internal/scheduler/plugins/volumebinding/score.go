package volumebinding

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
)

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	f, ok := p.NewFilter(l, s).(*filter)
	if !ok || f.refusal != "" {
		return nil
	}
	return &score{filter: f, curve: noderesourcesfit.Strategy{Type: noderesourcesfit.RequestedToCapacityRatio, Points: p.Points}}
}

// score rates by how much of the volumes, or of what can be provisioned, the claims ask for.
type score struct {
	filter *filter
	curve  noderesourcesfit.Strategy
}

// use is what is asked of a storage class and what there is.
type use struct{ requested, capacity int64 }

func (s *score) Node(slot int32) int64 {
	plan, obstacles := s.filter.find(slot)
	if obstacles != 0 {
		return 0
	}
	classes := provisions(plan)
	if len(plan.Bind) > 0 {
		classes = bindings(plan)
	}
	if len(classes) == 0 {
		return 0
	}
	var sum int64
	for _, u := range classes {
		sum += s.curve.Rate(u.requested, u.capacity)
	}
	return int64(math.Round(float64(sum) / float64(len(classes))))
}

func bindings(plan *storage.Plan) map[string]use {
	out := map[string]use{}
	for _, b := range plan.Bind {
		request, capacity := b.Claim.Spec.Resources.Requests[v1.ResourceStorage], b.Volume.Spec.Capacity[v1.ResourceStorage]
		u := out[b.Volume.Spec.StorageClassName]
		out[b.Volume.Spec.StorageClassName] = use{u.requested + request.Value(), u.capacity + capacity.Value()}
	}
	return out
}

// provisions counts classes whose drivers tell their capacity.
func provisions(plan *storage.Plan) map[string]use {
	out := map[string]use{}
	for _, p := range plan.Provision {
		if p.Total < 0 {
			continue
		}
		request := p.Claim.Spec.Resources.Requests[v1.ResourceStorage]
		class := storage.ClassOf(p.Claim)
		out[class] = use{out[class].requested + request.Value(), p.Total}
	}
	return out
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	plugin.ScoreColumn(s, nodes, weight, out)
}

func (s *score) Normalization() plugin.Normalization { return plugin.AsIs }
