package apiserver

import (
	"net/netip"
	"slices"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
	"github.com/bayplan/bayplan/internal/apiserver/resource/apps"
	"github.com/bayplan/bayplan/internal/apiserver/resource/autoscaling"
	"github.com/bayplan/bayplan/internal/apiserver/resource/batch"
	"github.com/bayplan/bayplan/internal/apiserver/resource/coordination"
	"github.com/bayplan/bayplan/internal/apiserver/resource/core"
	"github.com/bayplan/bayplan/internal/apiserver/resource/discovery"
	"github.com/bayplan/bayplan/internal/apiserver/resource/events"
	"github.com/bayplan/bayplan/internal/apiserver/resource/networking"
	"github.com/bayplan/bayplan/internal/apiserver/resource/policy"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rbac"
	"github.com/bayplan/bayplan/internal/apiserver/resource/scheduling"
	"github.com/bayplan/bayplan/internal/apiserver/resource/storage"
)

// DefaultServiceCIDR is where services get their addresses from unless the configuration says otherwise.
var DefaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")

// Groups are the API groups that are served, in the order of discovery. Of several versions of a group the preferred one comes first. The nodes are how
// requests that end at a node reach it.
func Groups(nodes relay.Nodes, serviceCIDR netip.Prefix) []resource.Group {
	if !serviceCIDR.IsValid() {
		serviceCIDR = DefaultServiceCIDR
	}
	event, addresses, budgets := core.Event(), networking.IPAddress(), policy.PodDisruptionBudget()
	groups := []resource.Group{
		core.Group(core.Options{
			Nodes: nodes, Event: event, ServiceCIDR: serviceCIDR, NodePorts: allocate.DefaultPorts, IPAddresses: addresses, Budgets: budgets,
		}),
		events.Group(event),
		apps.Group(),
		networking.Group(addresses),
		policy.Group(budgets),
		rbac.Group(),
		storage.Group(),
		coordination.Group(),
		discovery.Group(),
		batch.Group(),
	}
	return slices.Concat(groups, autoscaling.Groups(), scheduling.Groups())
}
