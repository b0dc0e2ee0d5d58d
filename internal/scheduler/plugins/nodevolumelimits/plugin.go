// Package nodevolumelimits is the plugin NodeVolumeLimits: a pod whose volumes would be more than a CSI driver can attach to
// a node, as its CSINode says, does not go there.
package nodevolumelimits

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
)

// Name is the plugin's name in configurations.
const Name = "NodeVolumeLimits"

// Reason is what nodes are rejected with that have too many volumes.
const Reason = "node(s) exceed max volume count"

// Plugin filters by the number of volumes.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// ForVolumes implements cycle.VolumePlugin.
func (Plugin) ForVolumes() {}

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	wanted := map[storage.Handle]bool{}
	collect(l.Storage, s, wanted)
	if len(wanted) == 0 {
		return nil
	}
	f := &filter{ledger: l, wanted: wanted}
	drivers := map[string]bool{}
	for handle := range wanted {
		drivers[handle.Driver] = true
	}
	f.drivers = slices.Sorted(maps.Keys(drivers))
	return f
}

// collect adds the CSI volumes of a pod.
func collect(s *storage.State, pod *shape.Shape, into map[storage.Handle]bool) {
	for i := range pod.Claims {
		if claim := s.Claim(pod.Class.Namespace, pod.Claims[i].Name); claim != nil {
			if handle, ok := s.Handle(claim); ok {
				into[handle] = true
			}
		}
	}
}

// filter is made anew whenever claims or volumes change.
type filter struct {
	ledger  *ledger.Ledger
	wanted  map[storage.Handle]bool
	drivers []string
}

// exceeded is the code of too many volumes; greater ones stand for the driver that is missing.
const exceeded plugin.Code = 1

func (f *filter) Node(slot int32) plugin.Code {
	node := f.ledger.NodeName(slot)
	for i, driver := range f.drivers {
		if f.ledger.Storage.Lacks(node, driver) {
			return exceeded + 1 + plugin.Code(i)
		}
	}
	if f.ledger.Storage.Limited(node) {
		if driver, _ := f.over(slot); driver != "" {
			return exceeded
		}
	}
	return plugin.Pass
}

// over returns the first driver that would have too many volumes on a node, and by how many. A volume that is attached but
// that no pod there uses counts, and as kube-scheduler has it counts once more if this pod wants it.
func (f *filter) over(slot int32) (driver string, by int) {
	node := f.ledger.NodeName(slot)
	used, attached := map[storage.Handle]bool{}, map[storage.Handle]bool{}
	for _, pod := range f.ledger.NodePods(slot) {
		collect(f.ledger.Storage, pod.Shape, used)
	}
	f.ledger.Storage.EachAttached(node, func(handle storage.Handle) {
		if !used[handle] {
			attached[handle] = true
		}
	})
	count, added := map[string]int{}, map[string]bool{}
	for handle := range used {
		count[handle.Driver]++
	}
	for handle := range attached {
		count[handle.Driver]++
	}
	for handle := range f.wanted {
		if !used[handle] {
			count[handle.Driver]++
			added[handle.Driver] = true
		}
	}
	for _, driver := range f.drivers {
		limit, ok := f.ledger.Storage.Limit(node, driver)
		if ok && added[driver] && count[driver] > limit {
			return driver, count[driver] - limit
		}
	}
	return "", 0
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

// Advise implements plugin.Advisor: which driver has too many volumes. The distance is by how many.
func (f *filter) Advise(slot int32) plugin.Advice {
	if code := f.Node(slot); code > exceeded {
		return plugin.Advice{Detail: strings.Join(f.Explain(code).Reasons, ""), Distance: 1}
	}
	driver, by := f.over(slot)
	return plugin.Advice{Detail: fmt.Sprintf("%d volumes of %s too many", by, driver), Distance: float64(by)}
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	if code > exceeded {
		reason := f.drivers[code-exceeded-1] + " CSI driver is not installed on the node"
		return plugin.Reject(Name, plugin.Unschedulable, reason)
	}
	return plugin.Reject(Name, plugin.Unschedulable, Reason)
}
