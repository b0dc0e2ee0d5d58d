// Package storage is what the scheduler knows of volumes: claims, volumes, classes, and what CSI drivers say of nodes.
//
//	SetClaim, SetVolume, ... ──► State ──► Refusal: what keeps a pod from every node
//	                              │  ▲       Find: what of a node is in the way, or the Plan: which claims to bind to which
//	                              │  │             volumes, which to have provisioned
//	                              │  └────── Assume: a plan counts at once; Forget takes it back
//	                              └────────► Settled: has what was planned come true?
//
// Like the ledger, of which it is a part, it belongs to one goroutine and knows no client.
package storage

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// State holds the objects.
type State struct {
	claims  map[string]*v1.PersistentVolumeClaim
	volumes map[string]*Volume
	// classed are the names of volumes by storage class.
	classed map[string]map[string]struct{}
	classes map[string]*storagev1.StorageClass
	nodes   map[string]*storagev1.CSINode
	drivers map[string]*storagev1.CSIDriver
	// capacities are by namespace and name, attachments by node and name.
	capacities  map[string]*capacity
	attachments map[string]map[string]*storagev1.VolumeAttachment
	attachedTo  map[string]string
	// assumed are claims and volumes as they will be once what was decided has been written.
	assumedClaims  map[string]*v1.PersistentVolumeClaim
	assumedVolumes map[string]*Volume
	revision       uint64
}

// Volume is a volume, and which nodes can use it.
type Volume struct {
	*v1.PersistentVolume
	nodes *nodeaffinity.LazyErrorNodeSelector
}

// New returns a state without objects.
func New() *State {
	return &State{
		claims: map[string]*v1.PersistentVolumeClaim{}, volumes: map[string]*Volume{}, classed: map[string]map[string]struct{}{},
		classes: map[string]*storagev1.StorageClass{}, nodes: map[string]*storagev1.CSINode{},
		drivers: map[string]*storagev1.CSIDriver{}, capacities: map[string]*capacity{},
		attachments: map[string]map[string]*storagev1.VolumeAttachment{}, attachedTo: map[string]string{},
		assumedClaims: map[string]*v1.PersistentVolumeClaim{}, assumedVolumes: map[string]*Volume{},
	}
}

// Revision moves whenever an object, or what is assumed of one, changes.
func (s *State) Revision() uint64 { return s.revision }

func key(namespace, name string) string { return namespace + "/" + name }

// Claim returns a claim as it is or is assumed to be, nil if there is none.
func (s *State) Claim(namespace, name string) *v1.PersistentVolumeClaim {
	if assumed := s.assumedClaims[key(namespace, name)]; assumed != nil {
		return assumed
	}
	return s.claims[key(namespace, name)]
}

// Volume returns a volume as it is or is assumed to be, nil if there is none.
func (s *State) Volume(name string) *Volume {
	if assumed := s.assumedVolumes[name]; assumed != nil {
		return assumed
	}
	return s.volumes[name]
}

// SetClaim takes in a claim. It ends what was assumed of it.
func (s *State) SetClaim(claim *v1.PersistentVolumeClaim) {
	at := key(claim.Namespace, claim.Name)
	s.claims[at] = claim
	delete(s.assumedClaims, at)
	s.revision++
}

// DeleteClaim forgets a claim.
func (s *State) DeleteClaim(namespace, name string) {
	delete(s.claims, key(namespace, name))
	delete(s.assumedClaims, key(namespace, name))
	s.revision++
}

// SetVolume takes in a volume. It ends what was assumed of it.
func (s *State) SetVolume(volume *v1.PersistentVolume) {
	s.unclass(volume.Name)
	s.volumes[volume.Name] = compile(volume)
	delete(s.assumedVolumes, volume.Name)
	class := classOfVolume(volume)
	if s.classed[class] == nil {
		s.classed[class] = map[string]struct{}{}
	}
	s.classed[class][volume.Name] = struct{}{}
	s.revision++
}

// DeleteVolume forgets a volume.
func (s *State) DeleteVolume(name string) {
	s.unclass(name)
	delete(s.volumes, name)
	delete(s.assumedVolumes, name)
	s.revision++
}

func (s *State) unclass(name string) {
	if old := s.volumes[name]; old != nil {
		class := classOfVolume(old.PersistentVolume)
		delete(s.classed[class], name)
		if len(s.classed[class]) == 0 {
			delete(s.classed, class)
		}
	}
}

func compile(volume *v1.PersistentVolume) *Volume {
	v := &Volume{PersistentVolume: volume}
	if a := volume.Spec.NodeAffinity; a != nil && a.Required != nil {
		v.nodes = nodeaffinity.NewLazyErrorNodeSelector(a.Required)
	}
	return v
}

// volumesOf returns the volumes of a class by name.
func (s *State) volumesOf(class string) (out []*Volume) {
	for _, name := range slices.Sorted(maps.Keys(s.classed[class])) {
		out = append(out, s.Volume(name))
	}
	return out
}

// SetClass takes in a storage class.
func (s *State) SetClass(class *storagev1.StorageClass) { set(s, s.classes, class.Name, class) }

// DeleteClass forgets a storage class.
func (s *State) DeleteClass(name string) { remove(s, s.classes, name) }

// SetCSINode takes in what CSI drivers say of a node.
func (s *State) SetCSINode(node *storagev1.CSINode) { set(s, s.nodes, node.Name, node) }

// DeleteCSINode forgets it.
func (s *State) DeleteCSINode(name string) { remove(s, s.nodes, name) }

// SetDriver takes in a CSI driver.
func (s *State) SetDriver(driver *storagev1.CSIDriver) { set(s, s.drivers, driver.Name, driver) }

// DeleteDriver forgets a CSI driver.
func (s *State) DeleteDriver(name string) { remove(s, s.drivers, name) }

func set[T any](s *State, objects map[string]T, name string, object T) {
	objects[name] = object
	s.revision++
}

func remove[T any](s *State, objects map[string]T, name string) {
	delete(objects, name)
	s.revision++
}

// SetAttachment takes in that a volume is attached to a node.
func (s *State) SetAttachment(a *storagev1.VolumeAttachment) {
	s.DeleteAttachment(a.Name)
	node := a.Spec.NodeName
	if s.attachments[node] == nil {
		s.attachments[node] = map[string]*storagev1.VolumeAttachment{}
	}
	s.attachments[node][a.Name], s.attachedTo[a.Name] = a, node
}

// DeleteAttachment forgets that a volume is attached.
func (s *State) DeleteAttachment(name string) {
	s.revision++
	node, known := s.attachedTo[name]
	if !known {
		return
	}
	delete(s.attachedTo, name)
	delete(s.attachments[node], name)
	if len(s.attachments[node]) == 0 {
		delete(s.attachments, node)
	}
}
