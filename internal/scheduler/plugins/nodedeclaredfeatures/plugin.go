// Package nodedeclaredfeatures is the plugin NodeDeclaredFeatures: a pod that needs something which not every version of
// the kubelet can do goes only to nodes that declare it in status.declaredFeatures.
package nodedeclaredfeatures

import (
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "NodeDeclaredFeatures"

// Reason is what nodes are rejected with.
const Reason = "node(s) didn't match Pod's required features"

// Plugin filters by declared features.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	if len(s.Features) == 0 {
		return nil
	}
	return &filter{ledger: l, needs: s.Features}
}

type filter struct {
	ledger *ledger.Ledger
	needs  []string
}

func (f *filter) Node(slot int32) plugin.Code {
	if len(f.missing(slot)) > 0 {
		return 1
	}
	return plugin.Pass
}

func (f *filter) missing(slot int32) (out []string) {
	declared := f.ledger.Features(slot)
	for _, feature := range f.needs {
		if !slices.Contains(declared, feature) {
			out = append(out, feature)
		}
	}
	return out
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

// Advise implements plugin.Advisor: which features the node does not declare. The distance is their number.
func (f *filter) Advise(slot int32) plugin.Advice {
	missing := f.missing(slot)
	return plugin.Advice{Detail: "the node does not declare " + strings.Join(missing, ", "), Distance: float64(len(missing))}
}

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}
