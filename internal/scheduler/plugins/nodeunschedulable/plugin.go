// Package nodeunschedulable is the plugin NodeUnschedulable: a cordoned node (spec.unschedulable) takes only pods that
// tolerate the taint node.kubernetes.io/unschedulable.
package nodeunschedulable

import (
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/tainttoleration"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// Name is the plugin's name in configurations.
const Name = "NodeUnschedulable"

// Reason is what cordoned nodes are rejected with.
const Reason = "node(s) were unschedulable"

// Plugin filters by spec.unschedulable.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	taint := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	if tainttoleration.Tolerated(s.Tolerations, &taint) {
		return nil
	}
	return &filter{ledger: l}
}

type filter struct{ ledger *ledger.Ledger }

func (f *filter) Node(slot int32) plugin.Code {
	if f.ledger.Unschedulable.Has(slot) {
		return 1
	}
	return plugin.Pass
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	for i, word := range f.ledger.Unschedulable {
		for failed := word & pass[i]; failed != 0; failed &= failed - 1 {
			fail(int32(i<<6+bits.TrailingZeros64(failed)), 1)
		}
		pass[i] &^= word
	}
}

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}
