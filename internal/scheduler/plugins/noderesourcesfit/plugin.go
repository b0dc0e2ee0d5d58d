// Package noderesourcesfit is the plugin NodeResourcesFit: a pod goes only to nodes that have what it requests to spare,
// and rather to the emptier (LeastAllocated) or fuller ones (MostAllocated, RequestedToCapacityRatio).
package noderesourcesfit

import (
	"math"
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
	f := &filter{ledger: l, amounts: [2]int64{notRequested, notRequested}}
	for _, r := range s.Requests {
		switch {
		case p.ignores(l.Shapes.Resources.Name(r.Resource)):
			continue
		case r.Resource <= shape.Memory:
			f.amounts[r.Resource] = r.Amount
		default:
			f.further = append(f.further, r)
		}
		f.requests = append(f.requests, r)
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

// notRequested is an amount of which no node has too little.
const notRequested = math.MinInt64 / 2

type filter struct {
	ledger   *ledger.Ledger
	requests []shape.Request
	// amounts are the requests of CPU and memory, further the others.
	amounts [2]int64
	further []shape.Request
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

// Column implements plugin.Filter.
func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	f.Block(pass, 0, len(pass), fail)
}

// Block finds the nodes that fail with a pass over pods, CPU and memory and one for each further resource, and asks those
// for the reason.
func (f *filter) Block(pass ledger.Bitmap, from, to int, fail func(int32, plugin.Code)) {
	l := f.ledger
	cpu, cpuUsed := l.Allocatable(shape.CPU), l.Requested(shape.CPU)
	memory, memoryUsed := l.Allocatable(shape.Memory), l.Requested(shape.Memory)
	for i := from; i < to; i++ {
		if pass[i] == 0 {
			continue
		}
		lo, hi := i<<6, min(i<<6+64, len(l.PodCount))
		failed := tooMany(l.AllowedPods[lo:hi], l.PodCount[lo:hi])
		failed |= short(cpu[lo:hi], cpuUsed[lo:hi], f.amounts[shape.CPU], memory[lo:hi], memoryUsed[lo:hi], f.amounts[shape.Memory])
		for _, r := range f.further {
			allocatable, used := l.Allocatable(r.Resource)[lo:hi], l.Requested(r.Resource)[lo:hi]
			failed |= short(allocatable, used, r.Amount, allocatable, used, r.Amount)
		}
		failed &= pass[i]
		pass[i] &^= failed
		for ; failed != 0; failed &= failed - 1 {
			slot := int32(i<<6 + bits.TrailingZeros64(failed))
			fail(slot, f.Node(slot))
		}
	}
}

// tooMany marks the nodes that take no more pods.
func tooMany(allowed, pods []int32) (word uint64) {
	allowed = allowed[:len(pods)]
	for j := range pods {
		word |= uint64(uint32(allowed[j]-pods[j]-1)>>31) << (j & 63)
	}
	return word
}

// short marks the nodes that have too little of either of two resources. A difference below zero is told by its sign
// bit, without a branch. A resource that is not requested has the amount notRequested.
func short(all1, used1 []int64, amount1 int64, all2, used2 []int64, amount2 int64) (word uint64) {
	used1, all2, used2 = used1[:len(all1)], all2[:len(all1)], used2[:len(all1)]
	for j := range all1 {
		left := (all1[j] - used1[j] - amount1) | (all2[j] - used2[j] - amount2)
		word |= uint64(left) >> 63 << (j & 63)
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
