// Package volumezone is the plugin VolumeZone: a pod with bound volumes that carry zone or region labels goes only to nodes
// of those zones and regions.
package volumezone

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Name is the plugin's name in configurations.
const Name = "VolumeZone"

// Reason is what nodes are rejected with.
const Reason = "node(s) had no available volume zone"

// keys are the labels that count, and what they are called today.
var keys = map[string]string{
	v1.LabelFailureDomainBetaZone: v1.LabelTopologyZone, v1.LabelFailureDomainBetaRegion: v1.LabelTopologyRegion,
	v1.LabelTopologyZone: v1.LabelTopologyZone, v1.LabelTopologyRegion: v1.LabelTopologyRegion,
}

// Plugin filters by the zones of volumes.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// ForVolumes implements cycle.VolumePlugin.
func (Plugin) ForVolumes() {}

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	f := &filter{ledger: l}
	for i := range s.Claims {
		// The claims of generic ephemeral volumes do not count, as in kube-scheduler.
		if s.Claims[i].Pod == "" && f.refusal == "" {
			f.add(s.Class.Namespace, s.Claims[i].Name)
		}
	}
	if f.refusal == "" && len(f.wants) == 0 {
		return nil
	}
	return f
}

// want is a label of a volume, and the values that nodes may have.
type want struct {
	volume, key string
	values      sets.Set[string]
}

// filter is made anew whenever claims or volumes change.
type filter struct {
	ledger  *ledger.Ledger
	wants   []want
	refusal string
}

func (f *filter) add(namespace, name string) {
	claim := f.ledger.Storage.Claim(namespace, name)
	if claim == nil {
		f.refusal = storage.NotFound(name)
		return
	}
	if claim.Spec.VolumeName == "" {
		f.refusal = f.unbound(claim)
		return
	}
	volume := f.ledger.Storage.Volume(claim.Spec.VolumeName)
	if volume == nil {
		f.refusal = fmt.Sprintf("persistentvolume %q not found", claim.Spec.VolumeName)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value, ok := volume.Labels[key]; ok {
			if values := split(value); values != nil {
				f.wants = append(f.wants, want{volume.Name, key, values})
			}
		}
	}
}

// unbound tells why a claim without a volume keeps the pod from every node; empty if it is bound once the pod has one.
func (f *filter) unbound(claim *v1.PersistentVolumeClaim) string {
	name := storage.ClassOf(claim)
	class := f.ledger.Storage.Class(name)
	switch {
	case name == "":
		return "PersistentVolumeClaim had no pv name and storageClass name"
	case class == nil:
		return fmt.Sprintf("storageclass.storage.k8s.io %q not found", name)
	case class.VolumeBindingMode == nil:
		return fmt.Sprintf("VolumeBindingMode not set for StorageClass %q", name)
	case *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return "PersistentVolume had no name"
	}
	return ""
}

// split reads a label that may name several zones, "a__b"; nil if it cannot be read, and then does not count.
func split(value string) sets.Set[string] {
	values := sets.New[string]()
	for _, part := range strings.Split(value, "__") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil
		}
		values.Insert(part)
	}
	return values
}

// Refuse implements plugin.Refuser.
func (f *filter) Refuse() (plugin.Status, bool) {
	if f.refusal == "" {
		return plugin.Status{}, false
	}
	return plugin.Reject(Name, plugin.Unresolvable, f.refusal), true
}

func (f *filter) Node(slot int32) plugin.Code {
	if f.mismatch(slot) != nil {
		return 1
	}
	return plugin.Pass
}

// mismatch returns what the node does not have. A node without any such label is none of a cloud, and takes all volumes.
func (f *filter) mismatch(slot int32) *want {
	labels := f.ledger.Labels(slot)
	anywhere := true
	for key := range keys {
		if _, ok := labels[key]; ok {
			anywhere = false
		}
	}
	if anywhere {
		return nil
	}
	for i := range f.wants {
		w := &f.wants[i]
		value, ok := labels[w.key]
		if !ok {
			value, ok = labels[keys[w.key]]
		}
		if !ok || !w.values.Has(value) {
			return w
		}
	}
	return nil
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	plugin.FilterColumn(f, pass, fail)
}

// Advise implements plugin.Advisor: which label of which volume the node does not match.
func (f *filter) Advise(slot int32) plugin.Advice {
	advice := plugin.Advice{Detail: f.refusal, Distance: 1}
	if w := f.mismatch(slot); w != nil {
		advice.Detail = fmt.Sprintf("volume %s is in %s=%s", w.volume, w.key, strings.Join(sets.List(w.values), ","))
	}
	return advice
}

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}
