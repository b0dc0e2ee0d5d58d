// Package volumerestrictions is the plugin VolumeRestrictions: a pod does not go to nodes where another one has a disk that
// cannot be mounted twice, and to no node at all while another one uses its claim with the mode ReadWriteOncePod.
package volumerestrictions

import (
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
)

// Name is the plugin's name in configurations.
const Name = "VolumeRestrictions"

// The reasons for which nodes are rejected.
const (
	ReasonDisk  = "node(s) had no available disk"
	ReasonClaim = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

const (
	disk plugin.Code = iota + 1
	inUse
)

// Plugin filters by what excludes each other.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// ForVolumes implements cycle.VolumePlugin.
func (Plugin) ForVolumes() {}

// NewFilter implements plugin.FilterPlugin. Only a pod with a claim that is for one pod has to count pods elsewhere.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	f := &filter{ledger: l, disks: s.Disks}
	var once []string
	for i := range s.Claims {
		if s.Claims[i].Pod != "" {
			continue
		}
		name := s.Claims[i].Name
		switch claim := l.Storage.Claim(s.Class.Namespace, name); {
		case claim == nil && f.refusal == "":
			f.refusal = storage.NotFound(name)
		case claim != nil && slices.Contains(claim.Spec.AccessModes, v1.ReadWriteOncePod):
			once = append(once, name)
		}
	}
	switch {
	case len(once) > 0:
		return &counting{filter: *f, namespace: s.Class.Namespace, once: once}
	case len(s.Disks) > 0 || f.refusal != "":
		return f
	}
	return nil
}

// filter looks at a node's pods only. It is made anew whenever claims change.
type filter struct {
	ledger  *ledger.Ledger
	disks   []shape.Disk
	refusal string
}

// Refuse implements plugin.Refuser: a claim does not exist.
func (f *filter) Refuse() (plugin.Status, bool) {
	if f.refusal == "" {
		return plugin.Status{}, false
	}
	return plugin.Reject(Name, plugin.Unresolvable, f.refusal), true
}

func (f *filter) Node(slot int32) plugin.Code {
	if len(f.disks) == 0 {
		return plugin.Pass
	}
	for _, pod := range f.ledger.NodePods(slot) {
		for i := range pod.Shape.Disks {
			for j := range f.disks {
				if f.disks[j].Conflicts(&pod.Shape.Disks[i]) {
					return disk
				}
			}
		}
	}
	return plugin.Pass
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	if code == inUse {
		return plugin.Reject(Name, plugin.Unschedulable, ReasonClaim)
	}
	return plugin.Reject(Name, plugin.Unschedulable, ReasonDisk)
}

// counting also counts, over all nodes, the uses of claims that are for one pod.
type counting struct {
	filter
	namespace string
	once      []string
	uses      int
	version   uint64
}

// usesOf is how many of the claims one pod of a shape uses.
func (f *counting) usesOf(s *shape.Shape) (n int) {
	if s.Class.Namespace != f.namespace {
		return 0
	}
	for i := range s.Claims {
		if s.Claims[i].Pod == "" && slices.Contains(f.once, s.Claims[i].Name) {
			n++
		}
	}
	return n
}

// Build implements plugin.Follower.
func (f *counting) Build() {
	f.uses = 0
	f.ledger.EachGroup(func(g *ledger.Group) { f.uses += len(g.Slots) * f.usesOf(g.Shape) })
	f.version++
}

// Apply implements plugin.Follower.
func (f *counting) Apply(c *ledger.Change) bool {
	if c.Shape == nil {
		return true
	}
	n := f.usesOf(c.Shape)
	switch {
	case n == 0:
		return true
	case c.Kind&ledger.PodAdded != 0:
		f.uses += n
	case c.Kind&ledger.PodRemoved != 0:
		f.uses -= n
	}
	f.version++
	return true
}

// Version implements plugin.Follower.
func (f *counting) Version() uint64 { return f.version }

// Idle implements plugin.Idler.
func (f *counting) Idle() bool { return f.uses == 0 && len(f.disks) == 0 }

// Skips implements plugin.Skipper.
func (f *counting) Skips() bool { return f.Idle() }

func (f *counting) Node(slot int32) plugin.Code {
	if code := f.filter.Node(slot); code != plugin.Pass {
		return code
	}
	if f.uses > 0 {
		return inUse
	}
	return plugin.Pass
}

func (f *counting) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}
