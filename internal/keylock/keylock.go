// Package keylock has a lock for each key of many, of which only those that are held take memory.
package keylock

import "sync"

// Locks are the locks. The zero value is ready.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*entry
}

type entry struct {
	sync.Mutex
	users int // who hold the lock or wait for it
}

// Lock waits until nobody else has the key and returns the function that gives it back.
func (k *Locks) Lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*entry{}
	}
	l := k.locks[key]
	if l == nil {
		l = &entry{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
}
