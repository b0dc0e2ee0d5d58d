package ledger

import (
	"maps"
	"math"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// nodeRecord is what of a node does not fit into a column of numbers.
type nodeRecord struct {
	name   string
	labels map[string]string
	zone   string
	// since orders nodes of a zone by the time they came.
	since  uint64
	pods   []*Pod
	images []int32
	// features are what the node declares that it can do.
	features []string
}

// Slot returns the slot of a node.
func (l *Ledger) Slot(name string) (int32, bool) {
	slot, ok := l.bySlot[name]
	return slot, ok
}

// NodeName returns the name of the node in a slot.
func (l *Ledger) NodeName(slot int32) string { return l.nodes[slot].name }

// Labels returns the labels of the node in a slot.
func (l *Ledger) Labels(slot int32) map[string]string { return l.nodes[slot].labels }

// NodePods returns the pods on the node in a slot, in no particular order. The slice belongs to the ledger.
func (l *Ledger) NodePods(slot int32) []*Pod { return l.nodes[slot].pods }

// SetNode adds a node, or changes it to what it is now, and tells what of it has changed; 0 if nothing that placement
// depends on has.
func (l *Ledger) SetNode(node *v1.Node) Kind {
	slot, known := l.bySlot[node.Name]
	if !known {
		slot = l.takeSlot(node.Name)
	}
	kind := l.setLabels(slot, node.Labels) | l.setTaints(slot, node) | l.setAllocatable(slot, node) |
		l.setImages(slot, node.Status.Images) | l.setFeatures(slot, node.Status.DeclaredFeatures)
	if known {
		if kind != 0 {
			l.journal.append(Change{Slot: slot, Kind: kind})
		}
		return kind
	}
	l.journal.append(Change{Slot: slot, Kind: NodeAdded})
	for _, pod := range l.absent[node.Name] {
		delete(l.absentNode, pod)
		l.place(pod, slot)
	}
	delete(l.absent, node.Name)
	return NodeAdded
}

// DeleteNode removes a node. Its pods stay on record and count again should a node of that name come back.
func (l *Ledger) DeleteNode(name string) bool {
	slot, known := l.bySlot[name]
	if !known {
		return false
	}
	for pods := l.nodes[slot].pods; len(pods) > 0; pods = l.nodes[slot].pods {
		pod := pods[len(pods)-1]
		l.displace(pod)
		l.setAbsent(pod, name)
	}
	l.clearSlot(slot)
	delete(l.bySlot, name)
	l.free = append(l.free, slot)
	l.count--
	l.journal.append(Change{Slot: slot, Kind: NodeRemoved})
	return true
}

// takeSlot gives a new node a slot: one that a deleted node has left, or one more.
func (l *Ledger) takeSlot(name string) int32 {
	var slot int32
	if n := len(l.free); n > 0 {
		slot, l.free = l.free[n-1], l.free[:n-1]
	} else {
		slot = int32(len(l.nodes))
		l.growSlots()
	}
	l.nodes[slot].name = name
	l.bySlot[name] = slot
	l.Live.Set(slot)
	l.count++
	return slot
}

func (l *Ledger) growSlots() {
	l.nodes = append(l.nodes, nodeRecord{})
	n := len(l.nodes)
	l.Live, l.Unschedulable = l.Live.grow(n), l.Unschedulable.grow(n)
	l.AllowedPods, l.PodCount = append(l.AllowedPods, 0), append(l.PodCount, 0)
	l.TaintSet = append(l.TaintSet, 0)
	for i := range l.Scoring {
		l.Scoring[i] = append(l.Scoring[i], 0)
	}
	for i := range l.allocatable {
		l.allocatable[i] = append(l.allocatable[i], 0)
		l.requested[i] = append(l.requested[i], 0)
	}
	for _, column := range l.columns {
		column.Value = append(column.Value, 0)
	}
}

func (l *Ledger) clearSlot(slot int32) {
	node := &l.nodes[slot]
	l.setLabels(slot, nil)
	l.setImages(slot, nil)
	l.zones.remove(node.zone)
	*node = nodeRecord{}
	l.Live.Clear(slot)
	l.Unschedulable.Clear(slot)
	l.TaintSet[slot], l.AllowedPods[slot] = 0, 0
	for i := range l.allocatable {
		l.allocatable[i][slot] = 0
	}
}

func (l *Ledger) setLabels(slot int32, labels map[string]string) Kind {
	node := &l.nodes[slot]
	zone := zoneOf(labels)
	switch {
	case node.since == 0:
		node.zone, node.since = zone, l.zones.add(zone)
	case labels != nil && zone != node.zone:
		l.zones.remove(node.zone)
		node.zone, node.since = zone, l.zones.add(zone)
	}
	if maps.Equal(node.labels, labels) {
		return 0
	}
	node.labels = labels
	for _, column := range l.columns {
		column.set(slot, labels)
	}
	return NodeLabels
}

// Features returns the features that the node in a slot declares.
func (l *Ledger) Features(slot int32) []string { return l.nodes[slot].features }

func (l *Ledger) setFeatures(slot int32, features []string) Kind {
	if slices.Equal(l.nodes[slot].features, features) {
		return 0
	}
	l.nodes[slot].features = features
	return NodeFeatures
}

func (l *Ledger) setTaints(slot int32, node *v1.Node) Kind {
	set := l.taints.intern(node.Spec.Taints)
	if set == l.TaintSet[slot] && node.Spec.Unschedulable == l.Unschedulable.Has(slot) {
		return 0
	}
	l.TaintSet[slot] = set
	l.Unschedulable.Put(slot, node.Spec.Unschedulable)
	return NodeTaints
}

func (l *Ledger) setAllocatable(slot int32, node *v1.Node) Kind {
	var kind Kind
	put := func(at *int64, amount int64) {
		if *at != amount {
			*at, kind = amount, NodeAllocatable
		}
	}
	list := node.Status.Allocatable
	l.Shapes.Resources.Amounts(list, func(resource int, amount int64) {
		l.growResources(resource)
		put(&l.allocatable[resource][slot], amount)
	})
	for resource := range l.allocatable {
		if _, named := list[l.Shapes.Resources.Name(resource)]; !named {
			put(&l.allocatable[resource][slot], 0)
		}
	}
	pods := list[v1.ResourcePods]
	allowed := int64(l.AllowedPods[slot])
	put(&allowed, min(shape.Amount(v1.ResourcePods, &pods), math.MaxInt32))
	l.AllowedPods[slot] = int32(allowed)
	return kind
}
