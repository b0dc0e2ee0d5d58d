// Package volumebinding is the plugin VolumeBinding: a pod goes only where its volumes can be, and claims that wait for
// their first pod are bound, or provisioned, once it has a node.
//
//	claims ──► Refuse: one is missing, or has still to be bound by the volume controller
//	       ──► Node: bound volumes that can be used there; free ones that fit; room to provision the rest
//	       ──► Plan: what to write before the pod is bound
package volumebinding

import (
	"strings"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
)

// Name is the plugin's name in configurations.
const Name = "VolumeBinding"

// reasons are those of the obstacles, in kube-scheduler's order.
var reasons = []struct {
	obstacle storage.Obstacles
	text     string
}{
	{storage.NodeConflict, "node(s) didn't match PersistentVolume's node affinity"},
	{storage.BindConflict, "node(s) didn't find available persistent volumes to bind"},
	{storage.NoSpace, "node(s) did not have enough free storage"},
	{storage.VolumeMissing, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
}

// Plugin filters by volumes and rates nodes by how well free ones fit.
type Plugin struct {
	// Timeout is how long to wait for claims to be bound.
	Timeout time.Duration
	// Points is the curve of scores over the part of the capacity that is requested.
	Points []noderesourcesfit.Point
}

// New returns the plugin with default arguments: ten minutes, and the less of the capacity is requested the better.
func New() *Plugin {
	return &Plugin{Timeout: 10 * time.Minute, Points: []noderesourcesfit.Point{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}}
}

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// ForVolumes implements cycle.VolumePlugin.
func (p *Plugin) ForVolumes() {}

// BindTimeout is how long claims have to be bound.
func (p *Plugin) BindTimeout() time.Duration { return p.Timeout }

// NewFilter implements plugin.FilterPlugin.
func (p *Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	if len(s.Claims) == 0 {
		return nil
	}
	return &filter{ledger: l, shape: s, refusal: l.Storage.Refusal(s.Class.Namespace, s.Claims)}
}

// filter is made anew whenever claims, volumes or classes change.
type filter struct {
	ledger  *ledger.Ledger
	shape   *shape.Shape
	refusal string
}

// Refuse implements plugin.Refuser.
func (f *filter) Refuse() (plugin.Status, bool) {
	if f.refusal == "" {
		return plugin.Status{}, false
	}
	return plugin.Reject(Name, plugin.Unresolvable, f.refusal), true
}

func (f *filter) find(slot int32) (*storage.Plan, storage.Obstacles) {
	return f.ledger.Storage.Find(f.shape.Class.Namespace, f.shape.Claims, f.ledger.NodeName(slot), f.ledger.Labels(slot))
}

// Plan implements plugin.Planner.
func (f *filter) Plan(slot int32) *storage.Plan {
	plan, _ := f.find(slot)
	return plan
}

func (f *filter) Node(slot int32) plugin.Code {
	if f.refusal != "" {
		return plugin.Pass
	}
	_, obstacles := f.find(slot)
	return plugin.Code(obstacles)
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	status := plugin.Status{Plugin: Name, Verdict: plugin.Unresolvable}
	for _, reason := range reasons {
		if storage.Obstacles(code)&reason.obstacle != 0 {
			status.Reasons = append(status.Reasons, reason.text)
		}
	}
	return status
}

// Advise implements plugin.Advisor: the claims that are in the way.
func (f *filter) Advise(slot int32) plugin.Advice {
	var names []string
	for i := range f.shape.Claims {
		alone := f.shape.Claims[i : i+1]
		if _, obstacles := f.ledger.Storage.Find(f.shape.Class.Namespace, alone, f.ledger.NodeName(slot), f.ledger.Labels(slot)); obstacles != 0 {
			names = append(names, alone[0].Name)
		}
	}
	if len(names) == 0 {
		return plugin.Advice{Detail: "the claims together find no volumes there", Distance: 1}
	}
	return plugin.Advice{Detail: "claim " + strings.Join(names, ", "), Distance: float64(len(names))}
}
