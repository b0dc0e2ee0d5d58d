package storage

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// capacity is how much of a class can still be provisioned in a segment of the nodes.
type capacity struct {
	class string
	nodes labels.Selector
	// largest is the size of the largest volume possible, -1 if that is not known; total what scores compare with.
	largest, total int64
}

// SetCapacity takes in what a driver can still provision.
func (s *State) SetCapacity(c *storagev1.CSIStorageCapacity) {
	entry := &capacity{class: c.StorageClassName, nodes: labels.Nothing(), largest: -1}
	if c.NodeTopology != nil {
		if parsed, err := metav1.LabelSelectorAsSelector(c.NodeTopology); err == nil {
			entry.nodes = parsed
		}
	}
	if c.Capacity != nil {
		entry.total = c.Capacity.Value()
		entry.largest = entry.total
	}
	if c.MaximumVolumeSize != nil {
		entry.largest = c.MaximumVolumeSize.Value()
	}
	set(s, s.capacities, key(c.Namespace, c.Name), entry)
}

// DeleteCapacity forgets what a driver can still provision.
func (s *State) DeleteCapacity(namespace, name string) { remove(s, s.capacities, key(namespace, name)) }

// enough reports whether a claim can be provisioned on a node, and out of how much, -1 if the driver does not tell.
func (s *State) enough(class *storagev1.StorageClass, claim *v1.PersistentVolumeClaim, node labels.Set) (total int64, ok bool) {
	request, asks := claim.Spec.Resources.Requests[v1.ResourceStorage]
	driver := s.drivers[class.Provisioner]
	if !asks || driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return -1, true
	}
	for _, name := range slices.Sorted(maps.Keys(s.capacities)) {
		c := s.capacities[name]
		if c.class == class.Name && c.largest >= 0 && c.largest >= request.Value() && c.nodes.Matches(node) {
			return c.total, true
		}
	}
	return -1, false
}

// allows reports whether a class allows volumes on a node.
func allows(class *storagev1.StorageClass, node labels.Set) bool {
	if len(class.AllowedTopologies) == 0 {
		return true
	}
	return slices.ContainsFunc(class.AllowedTopologies, func(term v1.TopologySelectorTerm) bool {
		if len(term.MatchLabelExpressions) == 0 {
			return false
		}
		return !slices.ContainsFunc(term.MatchLabelExpressions, func(r v1.TopologySelectorLabelRequirement) bool {
			return !node.Has(r.Key) || !slices.Contains(r.Values, node[r.Key])
		})
	})
}
