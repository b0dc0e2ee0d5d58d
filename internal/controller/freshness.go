package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Freshness remembers the resource version of a controller's last write of each object, so that a sync can tell when its cache does not
// show that write yet. Conflicts protect a single object; this protects sums over several, such as the pods of all ReplicaSets of
// a Deployment.
type Freshness struct {
	mu     sync.Mutex
	writes map[types.UID]string
}

// NewFreshness makes an empty memory.
func NewFreshness() *Freshness { return &Freshness{writes: map[types.UID]string{}} }

// Wrote remembers an object as a write returned it.
func (f *Freshness) Wrote(obj metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[obj.GetUID()] = obj.GetResourceVersion()
}

// Stale tells whether a cached object is older than the controller's own last write of it. An event for it is then on its way.
func (f *Freshness) Stale(cached metav1.Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	written, found := f.writes[cached.GetUID()]
	if !found {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if err == nil && order < 0 {
		return true
	}
	delete(f.writes, cached.GetUID())
	return false
}

// Forget drops an object that is gone.
func (f *Freshness) Forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.writes, uid)
}
