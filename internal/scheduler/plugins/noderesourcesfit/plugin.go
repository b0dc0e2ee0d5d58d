// Package noderesourcesfit is the plugin NodeResourcesFit: a pod goes only to nodes that have what it requests to spare,
// and rather to the emptier (LeastAllocated) or fuller ones (MostAllocated, RequestedToCapacityRatio).
package noderesourcesfit

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// Name is the plugin's name in configurations.
const Name = "NodeResourcesFit"

// Plugin filters and scores by resources.
type Plugin struct {
	Strategy Strategy
	// IgnoredResources and IgnoredGroups (the part of the name before the slash) are extended resources not filtered by.
	IgnoredResources, IgnoredGroups []string
}

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (p *Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	f := &filter{ledger: l}
	for _, r := range s.Requests {
		if !p.ignores(l.Shapes.Resources.Name(r.Resource)) {
			f.requests = append(f.requests, r)
		}
	}
	return f
}

func (p *Plugin) ignores(name v1.ResourceName) bool {
	group, _, qualified := strings.Cut(string(name), "/")
	if !qualified || strings.HasPrefix(string(name), v1.ResourceDefaultNamespacePrefix) {
		return false
	}
	return slices.Contains(p.IgnoredResources, string(name)) || slices.Contains(p.IgnoredGroups, group)
}

// A filter's code has one bit for what is short: bit 0 for the number of pods, bit i+1 for the i-th request. The highest
// bit tells that the node could not hold the pod if it were empty.
const (
	tooManyPods  plugin.Code = 1
	unresolvable plugin.Code = 1 << 63
)

type filter struct {
	ledger   *ledger.Ledger
	requests []shape.Request
}

func (f *filter) Node(slot int32) plugin.Code {
	var code plugin.Code
	if f.ledger.PodCount[slot]+1 > f.ledger.AllowedPods[slot] {
		code = tooManyPods
	}
	for i, r := range f.requests {
		allocatable := f.ledger.Allocatable(r.Resource)[slot]
		if r.Amount > allocatable-f.ledger.Requested(r.Resource)[slot] {
			code |= bit(i)
			if r.Amount > allocatable {
				code |= unresolvable
			}
		}
	}
	return code
}

// bit of the i-th request. Pods with more than 61 different resources share the last one.
func bit(i int) plugin.Code { return 1 << min(i+1, 62) }

// Column finds the nodes that fail with one pass a resource, and asks those for the reason.
func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	used, allowed := f.ledger.PodCount, f.ledger.AllowedPods
	before := append(ledger.Bitmap(nil), pass...)
	for i := range pass {
		lo, hi := i<<6, min(i<<6+64, len(used))
		pass[i] &^= short(used[lo:hi], allowed[lo:hi], 1)
	}
	for _, r := range f.requests {
		requested, allocatable := f.ledger.Requested(r.Resource), f.ledger.Allocatable(r.Resource)
		for i := range pass {
			lo, hi := i<<6, min(i<<6+64, len(requested))
			pass[i] &^= short(requested[lo:hi], allocatable[lo:hi], r.Amount)
		}
	}
	for i := range pass {
		for failed := before[i] &^ pass[i]; failed != 0; failed &= failed - 1 {
			slot := int32(i<<6 + bits.TrailingZeros64(failed))
			fail(slot, f.Node(slot))
		}
	}
}

// short marks the nodes where used + amount > allowed: the sign bit of the difference, without a branch.
func short(used, allowed []int64, amount int64) (word uint64) {
	allowed = allowed[:len(used)]
	for j := range used {
		word |= uint64(allowed[j]-used[j]-amount) >> 63 << j
	}
	return word
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	status := plugin.Status{Plugin: Name, Verdict: plugin.Unschedulable}
	if code&unresolvable != 0 {
		status.Verdict = plugin.Unresolvable
	}
	if code&tooManyPods != 0 {
		status.Reasons = append(status.Reasons, "Too many pods")
	}
	for i, r := range f.requests {
		if code&bit(i) != 0 {
			status.Reasons = append(status.Reasons, "Insufficient "+string(f.ledger.Shapes.Resources.Name(r.Resource)))
		}
	}
	return status
}
