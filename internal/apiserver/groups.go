package apiserver

import (
	"net/netip"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
	"github.com/bayplan/bayplan/internal/apiserver/resource/apps"
	"github.com/bayplan/bayplan/internal/apiserver/resource/coordination"
	"github.com/bayplan/bayplan/internal/apiserver/resource/core"
	"github.com/bayplan/bayplan/internal/apiserver/resource/events"
	"github.com/bayplan/bayplan/internal/apiserver/resource/networking"
)

// DefaultServiceCIDR is where services get their addresses from unless the configuration says otherwise.
var DefaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")

// Groups are the API groups that are served, in the order of discovery. Of several versions of a group the preferred one comes first. The nodes are how
// requests that end at a node reach it.
func Groups(nodes relay.Nodes, serviceCIDR netip.Prefix) []resource.Group {
	if !serviceCIDR.IsValid() {
		serviceCIDR = DefaultServiceCIDR
	}
	event, addresses := core.Event(), networking.IPAddress()
	return []resource.Group{
		core.Group(core.Options{Nodes: nodes, Event: event, ServiceCIDR: serviceCIDR, NodePorts: allocate.DefaultPorts, IPAddresses: addresses}),
		apps.Group(),
		coordination.Group(),
		events.Group(event),
		networking.Group(addresses),
	}
}
