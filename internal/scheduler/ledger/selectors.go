package ledger

import (
	"maps"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selectorTable holds what Services and controllers select: pods that belong together are spread by default.
type selectorTable struct {
	services map[string]map[string]labels.Set
	owners   map[ownerKey]labels.Selector
	// revision moves, per namespace, whenever one of its selectors changes.
	revision map[string]uint64
}

// ownerKey names a ReplicationController, ReplicaSet or StatefulSet.
type ownerKey struct{ kind, namespace, name string }

func newSelectorTable() selectorTable {
	return selectorTable{
		services: map[string]map[string]labels.Set{}, owners: map[ownerKey]labels.Selector{}, revision: map[string]uint64{},
	}
}

// SetService records the selector of a Service; an empty one, which selects nothing, forgets it.
func (l *Ledger) SetService(namespace, name string, selector labels.Set) {
	t := &l.selectors
	old, known := t.services[namespace][name]
	if len(selector) == 0 {
		if known {
			delete(t.services[namespace], name)
			t.revision[namespace]++
		}
		return
	}
	if known && labels.Equals(old, selector) {
		return
	}
	if t.services[namespace] == nil {
		t.services[namespace] = map[string]labels.Set{}
	}
	t.services[namespace][name] = selector
	t.revision[namespace]++
}

// The kinds of owners whose selectors count.
const (
	ReplicationController = "ReplicationController"
	ReplicaSet            = "ReplicaSet"
	StatefulSet           = "StatefulSet"
)

// ownerGroups are the API versions of the kinds of owners.
var ownerGroups = map[string]schema.GroupVersion{
	ReplicationController: {Version: "v1"},
	ReplicaSet:            {Group: "apps", Version: "v1"},
	StatefulSet:           {Group: "apps", Version: "v1"},
}

// SetOwner records the selector of a controller of one of the kinds; nil forgets it.
func (l *Ledger) SetOwner(kind, namespace, name string, selector labels.Selector) {
	t := &l.selectors
	key := ownerKey{kind, namespace, name}
	old, known := t.owners[key]
	switch {
	case selector == nil && !known, selector != nil && known && old.String() == selector.String():
		return
	case selector == nil:
		delete(t.owners, key)
	default:
		t.owners[key] = selector
	}
	t.revision[namespace]++
}

// SelectorRevision moves whenever a selector of the namespace changes.
func (l *Ledger) SelectorRevision(namespace string) uint64 { return l.selectors.revision[namespace] }

// Siblings returns the selector of all pods that belong together with pods of a shape: those that the same Services and
// the same controller select. It is empty if nothing selects them.
func (l *Ledger) Siblings(s *shape.Shape) labels.Selector {
	t := &l.selectors
	set := labels.Set{}
	services := t.services[s.Class.Namespace]
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if services[name].AsSelectorPreValidated().Matches(s.Class.Labels) {
			set = labels.Merge(set, services[name])
		}
	}
	selector := labels.NewSelector()
	if len(set) > 0 {
		selector = set.AsSelectorPreValidated()
	}
	if group, known := ownerGroups[s.Owner.Kind]; known && group.String() == s.Owner.APIVersion {
		if owner := t.owners[ownerKey{s.Owner.Kind, s.Class.Namespace, s.Owner.Name}]; owner != nil {
			requirements, _ := owner.Requirements()
			selector = selector.Add(requirements...)
		}
	}
	return selector
}
