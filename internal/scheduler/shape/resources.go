package shape

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// The indexes of the resources that every cluster has. All others get the next free index when they are first seen.
const (
	CPU = iota
	Memory
	EphemeralStorage
)

// Resources gives every resource name a small number, so that amounts can live in arrays. "pods" has none: the number
// of pods of a node is counted apart.
type Resources struct {
	names []v1.ResourceName
	index map[v1.ResourceName]int
}

// NewResources returns the numbering that starts with CPU, memory and ephemeral storage.
func NewResources() *Resources {
	r := &Resources{index: map[v1.ResourceName]int{}}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		r.Index(name)
	}
	return r
}

// Index returns the number of a resource and gives it one if it has none yet.
func (r *Resources) Index(name v1.ResourceName) int {
	if i, ok := r.index[name]; ok {
		return i
	}
	i := len(r.names)
	r.names = append(r.names, name)
	r.index[name] = i
	return i
}

// learn numbers what is new in a list by name: the numbers must not depend on the order of a map.
func (r *Resources) learn(list v1.ResourceList) {
	for name := range list {
		if _, known := r.index[name]; known || name == v1.ResourcePods {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if name != v1.ResourcePods {
				r.Index(name)
			}
		}
		return
	}
}

// Amounts calls do for every resource of a list except "pods".
func (r *Resources) Amounts(list v1.ResourceList, do func(index int, amount int64)) {
	r.learn(list)
	for name, quantity := range list {
		if name != v1.ResourcePods {
			do(r.index[name], Amount(name, &quantity))
		}
	}
}

// Lookup returns the number of a resource if it has one.
func (r *Resources) Lookup(name v1.ResourceName) (int, bool) {
	i, ok := r.index[name]
	return i, ok
}

// Name returns the name of the resource with the given number.
func (r *Resources) Name(index int) v1.ResourceName { return r.names[index] }

// Len returns how many resources have been numbered.
func (r *Resources) Len() int { return len(r.names) }
