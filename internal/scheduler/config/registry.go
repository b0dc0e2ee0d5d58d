package config

import (
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/balancedallocation"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/imagelocality"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/interpodaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodedeclaredfeatures"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodename"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeports"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeunschedulable"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodevolumelimits"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/podtopologyspread"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/tainttoleration"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumebinding"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumerestrictions"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumezone"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// The plugins that are part of the queue or of binding rather than of a cycle. They cannot be replaced.
const (
	schedulingGates   = "SchedulingGates"
	prioritySort      = "PrioritySort"
	defaultBinder     = "DefaultBinder"
	defaultPreemption = "DefaultPreemption"
)

// defaults are the plugins enabled by default, in order, with their weights.
var defaults = []configv1.Plugin{
	{Name: schedulingGates}, {Name: prioritySort}, {Name: nodename.Name}, {Name: nodeunschedulable.Name},
	{Name: tainttoleration.Name, Weight: weight(3)}, {Name: nodeaffinity.Name, Weight: weight(2)}, {Name: nodeports.Name},
	{Name: noderesourcesfit.Name, Weight: weight(1)}, {Name: volumerestrictions.Name}, {Name: nodevolumelimits.Name},
	{Name: volumebinding.Name}, {Name: volumezone.Name}, {Name: podtopologyspread.Name, Weight: weight(2)},
	{Name: interpodaffinity.Name, Weight: weight(2)}, {Name: defaultPreemption},
	{Name: balancedallocation.Name, Weight: weight(1)}, {Name: imagelocality.Name, Weight: weight(1)}, {Name: defaultBinder},
	{Name: nodedeclaredfeatures.Name},
}

func weight(w int32) *int32 { return &w }

// elsewhere are kube-scheduler's plugins that are not here. They may be disabled, which changes nothing, but not enabled.
var elsewhere = map[string]bool{
	"DynamicResources": true, "GangScheduling": true,
}

// points are the extension points of the plugins that take no part in filtering and scoring; those of the others follow
// from the interfaces that they implement.
var points = map[string][]string{
	schedulingGates: {"preEnqueue"}, prioritySort: {"queueSort"}, defaultBinder: {"bind"},
	defaultPreemption:      {"postFilter", "preEnqueue"},
	nodeaffinity.Name:      {"preFilter", "preScore"},
	nodeports.Name:         {"preFilter"},
	noderesourcesfit.Name:  {"preFilter", "preScore"},
	podtopologyspread.Name: {"preFilter", "preScore"},
	interpodaffinity.Name:  {"preFilter", "preScore"},
	tainttoleration.Name:   {"preScore"}, balancedallocation.Name: {"preScore"},
	volumerestrictions.Name:   {"preFilter"},
	nodevolumelimits.Name:     {"preFilter"},
	volumebinding.Name:        {"preFilter", "preScore", "reserve", "preBind"},
	volumezone.Name:           {"preFilter"},
	nodedeclaredfeatures.Name: {"preFilter"},
}

// made are the plugins of one profile.
type made map[string]plugin.Plugin

func makePlugins(a *arguments) made {
	return made{
		nodeunschedulable.Name: nodeunschedulable.Plugin{}, nodename.Name: nodename.Plugin{},
		tainttoleration.Name: tainttoleration.Plugin{}, nodeports.Name: nodeports.Plugin{},
		nodeaffinity.Name: &a.affinity, noderesourcesfit.Name: &a.fit, podtopologyspread.Name: &a.spread,
		interpodaffinity.Name: &a.interPod, balancedallocation.Name: &a.balance, imagelocality.Name: &imagelocality.Plugin{},
		volumerestrictions.Name: volumerestrictions.Plugin{}, nodevolumelimits.Name: nodevolumelimits.Plugin{},
		volumebinding.Name: &a.volumes, volumezone.Name: volumezone.Plugin{}, nodedeclaredfeatures.Name: nodedeclaredfeatures.Plugin{},
	}
}

// known reports whether there is a plugin of the name.
func (m made) known(name string) bool {
	return m[name] != nil || points[name] != nil
}

// has reports whether a plugin takes part in an extension point.
func (m made) has(name, point string) bool {
	for _, p := range points[name] {
		if p == point {
			return true
		}
	}
	switch point {
	case "filter":
		_, ok := m[name].(plugin.FilterPlugin)
		return ok
	case "score":
		_, ok := m[name].(plugin.ScorePlugin)
		return ok
	}
	return false
}

// assemble makes a profile of the plugins enabled at each extension point.
func (m made) assemble(enabled map[string][]configv1.Plugin, a *arguments) *cycle.Profile {
	profile := &cycle.Profile{}
	for _, p := range enabled["filter"] {
		profile.Filters = append(profile.Filters, m[p.Name].(plugin.FilterPlugin))
	}
	for _, p := range enabled["score"] {
		w := int64(1)
		if p.Weight != nil && *p.Weight != 0 {
			w = int64(*p.Weight)
		}
		profile.Scores = append(profile.Scores, cycle.WeightedScore{ScorePlugin: m[p.Name].(plugin.ScorePlugin), Weight: w})
	}
	if len(enabled["postFilter"]) > 0 {
		profile.Preemption = &a.preemption
	}
	return profile
}
