package ledger

import (
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Group is all pods of one shape that are on known nodes.
type Group struct {
	Shape *shape.Shape
	// Slots holds the node of each pod. That of a pod being deleted is complemented (^slot).
	Slots []int32

	pods    []*Pod
	inSpace int
}

// groupTable finds groups by shape, by namespace, and by what the terms of their pods select.
type groupTable struct {
	byShape map[*shape.Shape]*Group
	bySpace map[string][]*Group
	holders map[bucket][]*Group
}

// bucket is where a group with terms is found: under the namespace that a term selects and one label that the term asks
// for. Terms with a namespace selector stand under namespace "", terms without such a label under key "".
type bucket struct{ namespace, key, value string }

func newGroupTable() groupTable {
	return groupTable{
		byShape: map[*shape.Shape]*Group{}, bySpace: map[string][]*Group{}, holders: map[bucket][]*Group{},
	}
}

func (t *groupTable) add(pod *Pod) {
	group := t.byShape[pod.Shape]
	if group == nil {
		group = &Group{Shape: pod.Shape}
		t.register(group)
	}
	pod.inGroup = int32(len(group.pods))
	group.pods = append(group.pods, pod)
	slot := pod.Slot
	if pod.Terminating {
		slot = ^slot
	}
	group.Slots = append(group.Slots, slot)
}

func (t *groupTable) remove(pod *Pod) {
	group := t.byShape[pod.Shape]
	last := len(group.pods) - 1
	moved := group.pods[last]
	group.pods[pod.inGroup], moved.inGroup = moved, pod.inGroup
	group.Slots[pod.inGroup] = group.Slots[last]
	group.pods[last] = nil
	group.pods, group.Slots = group.pods[:last], group.Slots[:last]
	if last == 0 {
		t.unregister(group)
	}
}

func (t *groupTable) mark(pod *Pod) { t.byShape[pod.Shape].Slots[pod.inGroup] = ^pod.Slot }

func (t *groupTable) register(group *Group) {
	s := group.Shape
	t.byShape[s] = group
	group.inSpace = len(t.bySpace[s.Class.Namespace])
	t.bySpace[s.Class.Namespace] = append(t.bySpace[s.Class.Namespace], group)
	eachBucket(s, func(b bucket) { t.holders[b] = append(t.holders[b], group) })
}

func (t *groupTable) unregister(group *Group) {
	s := group.Shape
	delete(t.byShape, s)
	space := t.bySpace[s.Class.Namespace]
	last := len(space) - 1
	space[group.inSpace], space[last].inSpace = space[last], group.inSpace
	space[last] = nil
	t.bySpace[s.Class.Namespace] = space[:last]
	if last == 0 {
		delete(t.bySpace, s.Class.Namespace)
	}
	eachBucket(s, func(b bucket) { t.dropHolder(b, group) })
}

func (t *groupTable) dropHolder(b bucket, group *Group) {
	list := t.holders[b]
	for i, g := range list {
		if g == group {
			list[i] = list[len(list)-1]
			t.holders[b] = list[:len(list)-1]
			break
		}
	}
	if len(t.holders[b]) == 0 {
		delete(t.holders, b)
	}
}

// eachBucket calls do for the bucket of every term of a shape.
func eachBucket(s *shape.Shape, do func(bucket)) {
	term := func(t *shape.Term) {
		key, value, _ := t.Selector.Pair()
		for _, namespace := range t.Namespaces {
			do(bucket{namespace, key, value})
		}
		if t.NamespaceSelector != nil {
			do(bucket{"", key, value})
		}
	}
	for _, t := range s.Affinity {
		term(t)
	}
	for _, t := range s.AntiAffinity {
		term(t)
	}
	for _, t := range s.PreferredAffinity {
		term(t.Term)
	}
	for _, t := range s.PreferredAntiAffinity {
		term(t.Term)
	}
}

// Group returns the pods of a shape, nil if there are none.
func (l *Ledger) Group(s *shape.Shape) *Group { return l.groups.byShape[s] }

// GroupsIn returns the groups of pods of a namespace. The slice belongs to the ledger.
func (l *Ledger) GroupsIn(namespace string) []*Group { return l.groups.bySpace[namespace] }

// EachGroup calls do for every group, in no particular order.
func (l *Ledger) EachGroup(do func(*Group)) {
	for _, group := range l.groups.byShape {
		do(group)
	}
}

// EachHolder calls do for every group with a term that may select pods of the class: all that do are among them. A group
// may come more than once.
func (l *Ledger) EachHolder(class *shape.Class, do func(*Group)) {
	for _, namespace := range [...]string{class.Namespace, ""} {
		for _, group := range l.groups.holders[bucket{namespace, "", ""}] {
			do(group)
		}
		for key, value := range class.Labels {
			for _, group := range l.groups.holders[bucket{namespace, key, value}] {
				do(group)
			}
		}
	}
}
