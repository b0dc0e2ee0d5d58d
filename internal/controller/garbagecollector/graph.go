package garbagecollector

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// object is what the graph knows of an object. It is never changed, only replaced.
type object struct {
	resource        resource
	namespace, name string
	uid             types.UID
	resourceVersion string
	owners          []metav1.OwnerReference
	deleting        bool
	foreground      bool // has the finalizer foregroundDeletion
	orphan          bool // has the finalizer orphan
}

func newObject(r resource, m *metav1.PartialObjectMetadata) *object {
	return &object{
		resource: r, namespace: m.Namespace, name: m.Name, uid: m.UID, resourceVersion: m.ResourceVersion, owners: m.OwnerReferences,
		deleting:   m.DeletionTimestamp != nil,
		foreground: slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents),
		orphan:     slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents),
	}
}

// waiting tells whether the object is held only until its dependents are deleted.
func (o *object) waiting() bool { return o.deleting && o.foreground }

// is tells whether the reference, found in a namespace, means this object: the UID alone is not enough, as anybody can write one.
func (o *object) is(ref metav1.OwnerReference, namespace string) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == o.resource.Group && ref.Kind == o.resource.kind && ref.Name == o.name &&
		(o.namespace == "" || o.namespace == namespace)
}

func (o *object) owner(uid types.UID) *metav1.OwnerReference {
	for i := range o.owners {
		if o.owners[i].UID == uid {
			return &o.owners[i]
		}
	}
	return nil
}

// blocks tells whether the object's reference holds its owner back in a foreground deletion.
func (o *object) blocks(owner types.UID) bool {
	ref := o.owner(owner)
	return ref != nil && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// graph knows who is owned by whom. enqueue is called for each object that must be looked at.
type graph struct {
	enqueue    func(types.UID)
	mu         sync.RWMutex
	objects    map[types.UID]*object
	dependents map[types.UID]sets.Set[types.UID]
}

func newGraph(enqueue func(types.UID)) *graph {
	return &graph{enqueue: enqueue, objects: map[types.UID]*object{}, dependents: map[types.UID]sets.Set[types.UID]{}}
}

func (g *graph) get(uid types.UID) *object {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.objects[uid]
}

// dependentsOf lists the objects that name the UID as an owner.
func (g *graph) dependentsOf(uid types.UID) []*object {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]*object, 0, len(g.dependents[uid]))
	for dependent := range g.dependents[uid] {
		out = append(out, g.objects[dependent])
	}
	return out
}

// put adds or replaces an object.
func (g *graph) put(o *object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.objects[o.uid]
	g.objects[o.uid] = o
	if before != nil {
		for _, ref := range before.owners {
			if o.owner(ref.UID) == nil {
				g.unlink(ref.UID, o.uid)
			}
		}
	}
	for _, ref := range o.owners {
		if g.dependents[ref.UID] == nil {
			g.dependents[ref.UID] = sets.New[types.UID]()
		}
		g.dependents[ref.UID].Insert(o.uid)
	}
	if g.needsLook(before, o) {
		g.enqueue(o.uid)
	}
	if o.waiting() && (before == nil || !before.waiting()) {
		g.enqueueDependents(o.uid)
	}
	if before != nil {
		g.wakeOwners(before)
	}
}

// needsLook tells whether something about the object itself or its owners may call for action.
func (g *graph) needsLook(before, o *object) bool {
	if o.deleting && (o.foreground || o.orphan) {
		return before == nil || !before.deleting || before.foreground != o.foreground || before.orphan != o.orphan
	}
	if o.deleting || (before != nil && slices.EqualFunc(before.owners, o.owners, sameReference)) {
		return false
	}
	for _, ref := range o.owners {
		if owner := g.objects[ref.UID]; owner == nil || owner.waiting() || !owner.is(ref, o.namespace) {
			return true
		}
	}
	return false
}

func sameReference(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}

// remove drops an object that is gone.
func (g *graph) remove(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.objects[uid]
	if o == nil {
		return
	}
	delete(g.objects, uid)
	for _, ref := range o.owners {
		g.unlink(ref.UID, uid)
	}
	g.wakeOwners(o)
	g.enqueueDependents(uid)
}

// removeAll drops the objects of a resource that is no longer served.
func (g *graph) removeAll(r resource) {
	g.mu.RLock()
	var gone []types.UID
	for uid, o := range g.objects {
		if o.resource == r {
			gone = append(gone, uid)
		}
	}
	g.mu.RUnlock()
	for _, uid := range gone {
		g.remove(uid)
	}
}

func (g *graph) unlink(owner, dependent types.UID) {
	set := g.dependents[owner]
	set.Delete(dependent)
	if len(set) == 0 {
		delete(g.dependents, owner)
	}
}

func (g *graph) enqueueDependents(uid types.UID) {
	for dependent := range g.dependents[uid] {
		g.enqueue(dependent)
	}
}

// wakeOwners has owners looked at that wait for this dependent.
func (g *graph) wakeOwners(before *object) {
	for _, ref := range before.owners {
		owner := g.objects[ref.UID]
		if owner == nil || !owner.waiting() {
			continue
		}
		if now := g.objects[before.uid]; now == nil || !now.blocks(ref.UID) {
			g.enqueue(ref.UID)
		}
	}
}
