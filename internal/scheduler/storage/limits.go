package storage

import (
	v1 "k8s.io/api/core/v1"
)

// Handle names a volume of a CSI driver.
type Handle struct{ Driver, Name string }

// Handle returns the CSI volume that a claim has or will have; false if it is none.
func (s *State) Handle(claim *v1.PersistentVolumeClaim) (Handle, bool) {
	if volume := s.Volume(claim.Spec.VolumeName); claim.Spec.VolumeName != "" && volume != nil {
		if volume.Spec.CSI == nil || volume.Spec.CSI.Driver == "" || volume.Spec.CSI.VolumeHandle == "" {
			return Handle{}, false
		}
		return Handle{volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle}, true
	}
	class := s.classes[ClassOf(claim)]
	if class == nil || class.Provisioner == "" {
		return Handle{}, false
	}
	// It has no name yet, but is one more of its driver. No driver's handle begins so.
	return Handle{class.Provisioner, "\x00" + key(claim.Namespace, claim.Name)}, true
}

// Limit returns how many volumes of a driver a node takes; false if there is no limit.
func (s *State) Limit(node, driver string) (int, bool) {
	if n := s.nodes[node]; n != nil {
		for i := range n.Spec.Drivers {
			if d := &n.Spec.Drivers[i]; d.Name == driver && d.Allocatable != nil && d.Allocatable.Count != nil {
				return int(*d.Allocatable.Count), true
			}
		}
	}
	return 0, false
}

// Limited reports whether a node has a limit for any driver.
func (s *State) Limited(node string) bool {
	if n := s.nodes[node]; n != nil {
		for i := range n.Spec.Drivers {
			if d := &n.Spec.Drivers[i]; d.Allocatable != nil && d.Allocatable.Count != nil {
				return true
			}
		}
	}
	return false
}

// Lacks reports whether a driver wants no pods on nodes that it is not installed on, and is not installed on this one.
func (s *State) Lacks(node, driver string) bool {
	d := s.drivers[driver]
	if d == nil || d.Spec.PreventPodSchedulingIfMissing == nil || !*d.Spec.PreventPodSchedulingIfMissing {
		return false
	}
	if n := s.nodes[node]; n != nil {
		for i := range n.Spec.Drivers {
			if n.Spec.Drivers[i].Name == driver {
				return false
			}
		}
	}
	return true
}

// EachAttached calls do for the CSI volumes that are attached to a node.
func (s *State) EachAttached(node string, do func(Handle)) {
	for _, a := range s.attachments[node] {
		if a.Spec.Attacher == "" || a.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		if volume := s.Volume(*a.Spec.Source.PersistentVolumeName); volume != nil && volume.Spec.CSI != nil {
			do(Handle{a.Spec.Attacher, volume.Spec.CSI.VolumeHandle})
		}
	}
}
