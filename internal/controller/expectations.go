package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// ExpectationsTimeout is how long a missing event holds a key back. It is a safety net: an object that was made and removed
// while the watch was broken never shows up.
const ExpectationsTimeout = 5 * time.Minute

// Expectations remembers, for each key, which of its own writes a controller has not yet seen in its cache. Until it has, the
// controller must not decide anything from that cache. Objects are told apart by UID, so that events of others never count.
//
// A UID is known only when the create call returns, and the event may come before that: while a create of a key is under way, the
// UIDs of all added objects of the key are kept aside.
type Expectations struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	keys  map[string]*expected
}

type expected struct {
	underway int                 // create calls that have not returned
	early    sets.Set[types.UID] // added while a create was under way
	creates  sets.Set[types.UID] // created, not yet seen
	deletes  sets.Set[types.UID] // deleted, still there in the cache
	since    time.Time           // the last write
}

// NewExpectations makes an empty set of expectations.
func NewExpectations(clk clock.PassiveClock) *Expectations {
	return &Expectations{clock: clk, keys: map[string]*expected{}}
}

// Satisfied tells whether the cache shows all of the key's own writes, and if not, after which time it no longer matters. It must be asked before the
// cache is read.
func (e *Expectations) Satisfied(key string) (bool, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.keys[key]
	if x == nil {
		return true, 0
	}
	left := ExpectationsTimeout - e.clock.Since(x.since)
	if left <= 0 {
		delete(e.keys, key)
		return true, 0
	}
	return false, left
}

// Forget drops everything about a key, when its object is gone.
func (e *Expectations) Forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// Creating is called before a create call.
func (e *Expectations) Creating(key string) {
	e.change(key, true, func(x *expected) { x.underway++ })
}

// Created is called with the UID that a create call returned.
func (e *Expectations) Created(key string, uid types.UID) {
	e.change(key, true, func(x *expected) {
		x.underway--
		if !x.early.Has(uid) {
			x.creates.Insert(uid)
		}
	})
}

// CreateFailed is called when a create call failed.
func (e *Expectations) CreateFailed(key string) {
	e.change(key, true, func(x *expected) { x.underway-- })
}

// Deleting is called before a delete call.
func (e *Expectations) Deleting(key string, uid types.UID) {
	e.change(key, true, func(x *expected) { x.deletes.Insert(uid) })
}

// DeleteFailed is called when a delete call failed, also when the object was already gone.
func (e *Expectations) DeleteFailed(key string, uid types.UID) { e.ObservedGone(key, uid) }

// ObservedAdd is called when the cache shows an object of the key.
func (e *Expectations) ObservedAdd(key string, uid types.UID) {
	e.change(key, false, func(x *expected) {
		x.creates.Delete(uid)
		if x.underway > 0 {
			x.early.Insert(uid)
		}
	})
}

// ObservedGone is called when the cache shows that an object of the key is removed or being removed.
func (e *Expectations) ObservedGone(key string, uid types.UID) {
	e.change(key, false, func(x *expected) {
		x.deletes.Delete(uid)
		x.creates.Delete(uid)
		if x.underway > 0 {
			x.early.Insert(uid)
		}
	})
}

func (e *Expectations) change(key string, write bool, f func(*expected)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.keys[key]
	if x == nil {
		if !write {
			return
		}
		x = &expected{early: sets.New[types.UID](), creates: sets.New[types.UID](), deletes: sets.New[types.UID]()}
		e.keys[key] = x
	}
	if write {
		x.since = e.clock.Now()
	}
	f(x)
	x.underway = max(x.underway, 0)
	if x.underway == 0 {
		clear(x.early)
		if len(x.creates) == 0 && len(x.deletes) == 0 {
			delete(e.keys, key)
		}
	}
}
