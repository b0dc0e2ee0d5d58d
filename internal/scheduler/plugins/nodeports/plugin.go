// Package nodeports is the plugin NodePorts: a pod with host ports goes only to nodes where they are free.
package nodeports

import (
	"fmt"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "NodePorts"

// Reason is what nodes are rejected with.
const Reason = "node(s) didn't have free ports for the requested pod ports"

// Plugin filters by host ports.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	if len(s.Ports) == 0 {
		return nil
	}
	return &filter{ledger: l, ports: s.Ports}
}

type filter struct {
	ledger *ledger.Ledger
	ports  []shape.Port
}

func (f *filter) Node(slot int32) plugin.Code {
	for _, port := range f.ports {
		if f.ledger.PortTaken(port, slot) {
			return 1
		}
	}
	return plugin.Pass
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	for _, port := range f.ports {
		f.ledger.EachPortTaken(port, func(slot int32) {
			if pass.Has(slot) {
				pass.Clear(slot)
				fail(slot, 1)
			}
		})
	}
}

// Advise implements plugin.Advisor: which ports are taken. The distance is their number.
func (f *filter) Advise(slot int32) plugin.Advice {
	var taken []string
	for _, port := range f.ports {
		if f.ledger.PortTaken(port, slot) {
			taken = append(taken, fmt.Sprintf("host port %s:%d/%s is taken", port.HostIP, port.Number, port.Protocol))
		}
	}
	return plugin.Advice{Detail: strings.Join(taken, ", "), Distance: float64(len(taken))}
}

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unschedulable, Reason)
}
