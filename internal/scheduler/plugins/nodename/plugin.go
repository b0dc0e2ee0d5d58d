// Package nodename is the plugin NodeName: a pod with spec.nodeName goes to that node or nowhere.
package nodename

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "NodeName"

// Reason is what other nodes are rejected with.
const Reason = "node(s) didn't match the requested node name"

// Plugin filters by spec.nodeName.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	if s.NodeName == "" {
		return nil
	}
	return &filter{ledger: l, name: s.NodeName}
}

type filter struct {
	ledger *ledger.Ledger
	name   string
}

func (f *filter) Node(slot int32) plugin.Code {
	if f.ledger.NodeName(slot) == f.name {
		return plugin.Pass
	}
	return 1
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

// Restrict implements plugin.Restrictor.
func (f *filter) Restrict() (names []string, ok bool) { return []string{f.name}, true }

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}
