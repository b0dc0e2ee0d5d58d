package storage

import (
	"cmp"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Obstacles are what of a node is in the way of a pod's volumes, one bit each.
type Obstacles uint8

// The obstacles.
const (
	// NodeConflict: a bound volume cannot be used there.
	NodeConflict Obstacles = 1 << iota
	// BindConflict: no volume there fits a claim, and none can be provisioned.
	BindConflict
	// NoSpace: the driver has not enough capacity left there.
	NoSpace
	// VolumeMissing: a claim is bound to a volume that does not exist.
	VolumeMissing
)

// notSupported is the provisioner of classes that provision nothing.
const notSupported = "kubernetes.io/no-provisioner"

// Plan is what has to be done about the volumes of a pod that gets a node.
type Plan struct {
	Node      string
	Bind      []Binding
	Provision []Provision
}

// Binding is a claim, and the volume that it is to be bound to.
type Binding struct {
	Claim  *v1.PersistentVolumeClaim
	Volume *v1.PersistentVolume
}

// Provision is a claim for which a volume is to be made, and out of how much; -1 if the driver does not tell.
type Provision struct {
	Claim *v1.PersistentVolumeClaim
	Total int64
}

// Find looks for the volumes of a pod on a node. Refusal must have had nothing against the claims.
func (s *State) Find(namespace string, list []shape.Claim, node string, set labels.Set) (*Plan, Obstacles) {
	plan := &Plan{Node: node}
	var obstacles Obstacles
	var open []*v1.PersistentVolumeClaim
	for i := range list {
		claim := s.Claim(namespace, list[i].Name)
		if !bound(claim) {
			open = append(open, claim)
			continue
		}
		if obstacles == 0 {
			obstacles = s.reach(claim, node, set)
		}
	}
	return plan, obstacles | s.findOpen(plan, open, set)
}

// reach tells what keeps a bound claim from a node.
func (s *State) reach(claim *v1.PersistentVolumeClaim, node string, set labels.Set) Obstacles {
	volume := s.Volume(claim.Spec.VolumeName)
	switch {
	case volume == nil:
		return VolumeMissing
	case !volume.usable(set):
		return NodeConflict
	}
	return 0
}

// usable reports whether nodes with these labels can use the volume.
func (v *Volume) usable(set labels.Set) bool {
	if v.nodes == nil {
		return true
	}
	matches, err := v.nodes.Match(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}})
	return err == nil && matches
}

// findOpen finds volumes for claims that are bound once the pod has a node: those that exist first, the smallest claim
// before the others; the rest is provisioned.
func (s *State) findOpen(plan *Plan, open []*v1.PersistentVolumeClaim, set labels.Set) Obstacles {
	var match, provision []*v1.PersistentVolumeClaim
	for _, claim := range open {
		selected, ok := claim.Annotations[annSelectedNode]
		switch {
		case ok && selected != plan.Node:
			return BindConflict
		case ok:
			provision = append(provision, claim)
		default:
			match = append(match, claim)
		}
	}
	slices.SortStableFunc(match, func(a, b *v1.PersistentVolumeClaim) int { return cmp.Compare(size(a), size(b)) })
	chosen := map[string]bool{}
	for _, claim := range match {
		volume := s.matching(claim, chosen, set)
		if volume == nil {
			provision = append(provision, claim)
			continue
		}
		chosen[volume.Name] = true
		plan.Bind = append(plan.Bind, Binding{Claim: claim, Volume: volume.PersistentVolume})
	}
	return s.planProvisions(plan, provision, set)
}

func (s *State) planProvisions(plan *Plan, list []*v1.PersistentVolumeClaim, set labels.Set) Obstacles {
	for _, claim := range list {
		class := s.classes[ClassOf(claim)]
		if class.Provisioner == "" || class.Provisioner == notSupported || !allows(class, set) {
			plan.Provision = nil
			return BindConflict
		}
		total, ok := s.enough(class, claim, set)
		if !ok {
			plan.Provision = nil
			return NoSpace
		}
		plan.Provision = append(plan.Provision, Provision{Claim: claim, Total: total})
	}
	return 0
}

func size(claim *v1.PersistentVolumeClaim) int64 {
	request := claim.Spec.Resources.Requests[v1.ResourceStorage]
	return request.Value()
}

// matching returns the volume that was made for a claim, or else the smallest free one that fits, of those not chosen yet.
func (s *State) matching(claim *v1.PersistentVolumeClaim, chosen map[string]bool, set labels.Set) (best *Volume) {
	selector := labels.Everything()
	if claim.Spec.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
		if err != nil {
			return nil
		}
		selector = parsed
	}
	for _, volume := range s.volumesOf(ClassOf(claim)) {
		if chosen[volume.Name] || !suits(claim, volume.PersistentVolume) {
			continue
		}
		if made(volume.PersistentVolume, claim) {
			if !volume.usable(set) {
				return nil
			}
			return volume
		}
		free := volume.Status.Phase == v1.VolumeAvailable && selector.Matches(labels.Set(volume.Labels)) &&
			accessible(claim, volume.PersistentVolume) && volume.usable(set)
		if free && (best == nil || content(volume) < content(best)) {
			best = volume
		}
	}
	return best
}

func content(volume *Volume) int64 {
	capacity := volume.Spec.Capacity[v1.ResourceStorage]
	return capacity.Value()
}

// made reports whether a volume is bound to a claim, or meant for it.
func made(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace && (ref.UID == "" || ref.UID == claim.UID)
}

// suits reports whether a volume is not another claim's, is large enough and of the right kind.
func suits(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) bool {
	request, capacity := claim.Spec.Resources.Requests[v1.ResourceStorage], volume.Spec.Capacity[v1.ResourceStorage]
	return (volume.Spec.ClaimRef == nil || made(volume, claim)) && capacity.Cmp(request) >= 0 &&
		mode(claim.Spec.VolumeMode) == mode(volume.Spec.VolumeMode) &&
		deref(claim.Spec.VolumeAttributesClassName) == deref(volume.Spec.VolumeAttributesClassName) && volume.DeletionTimestamp == nil
}

func mode(m *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if m == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *m
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// accessible reports whether a volume has every access mode of a claim.
func accessible(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) bool {
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			return false
		}
	}
	return true
}
