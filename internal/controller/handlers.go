package controller

import (
	"k8s.io/client-go/tools/cache"
)

// Handlers are event handlers of one type. Each field may be nil.
type Handlers[T any] struct {
	Add    func(obj T)
	Update func(old, obj T)
	// Delete also gets the last known state of objects whose deletion was only noticed by a new list.
	Delete func(obj T)
}

// OnAny calls f for every event, with the newest state known.
func OnAny[T any](f func(obj T)) Handlers[T] {
	return Handlers[T]{Add: f, Update: func(_, obj T) { f(obj) }, Delete: f}
}

// OnAdd is called by the informer.
func (h Handlers[T]) OnAdd(obj any, _ bool) {
	if t, ok := obj.(T); ok && h.Add != nil {
		h.Add(t)
	}
}

// OnUpdate is called by the informer.
func (h Handlers[T]) OnUpdate(old, obj any) {
	before, ok1 := old.(T)
	after, ok2 := obj.(T)
	if ok1 && ok2 && h.Update != nil {
		h.Update(before, after)
	}
}

// OnDelete is called by the informer.
func (h Handlers[T]) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if t, ok := obj.(T); ok && h.Delete != nil {
		h.Delete(t)
	}
}
