// Package plugins lists the native plugins and the order and weights that they have by default.
package plugins

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
)

// Default returns the plugins of a profile that configures nothing.
func Default() cycle.Profile {
	taints, affinity, fit := tainttoleration.Plugin{}, &nodeaffinity.Plugin{}, &noderesourcesfit.Plugin{}
	volumes, spread, near := volumebinding.New(), podtopologyspread.New(), interpodaffinity.New()
	return cycle.Profile{
		Filters: []plugin.FilterPlugin{
			nodename.Plugin{}, nodeunschedulable.Plugin{}, taints, affinity, nodeports.Plugin{}, fit, volumerestrictions.Plugin{},
			nodevolumelimits.Plugin{}, volumes, volumezone.Plugin{}, spread, near, nodedeclaredfeatures.Plugin{},
		},
		Preemption: &cycle.Preemption{MinCandidatePercentage: 10, MinCandidates: 100},
		Scores: []cycle.WeightedScore{
			{ScorePlugin: taints, Weight: 3},
			{ScorePlugin: affinity, Weight: 2},
			{ScorePlugin: fit, Weight: 1},
			{ScorePlugin: volumes, Weight: 1},
			{ScorePlugin: spread, Weight: 2},
			{ScorePlugin: near, Weight: 2},
			{ScorePlugin: &balancedallocation.Plugin{}, Weight: 1},
			{ScorePlugin: &imagelocality.Plugin{}, Weight: 1},
		},
	}
}
