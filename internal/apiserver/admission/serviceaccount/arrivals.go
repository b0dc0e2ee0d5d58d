package serviceaccount

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// arrivals wakes those who wait when the cache hears of a new account "default". It is the handler of the accounts' informer.
type arrivals struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// next returns a channel that is closed at the next arrival.
func (a *arrivals) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = make(chan struct{})
	}
	return a.waiting
}

// OnAdd implements cache.ResourceEventHandler.
func (a *arrivals) OnAdd(obj any, _ bool) {
	if account, ok := obj.(*corev1.ServiceAccount); !ok || account.Name != defaultAccount {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting != nil {
		close(a.waiting)
		a.waiting = nil
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (*arrivals) OnUpdate(_, _ any) {}

// OnDelete implements cache.ResourceEventHandler.
func (*arrivals) OnDelete(any) {}
