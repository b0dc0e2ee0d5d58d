package garbagecollector

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// patience is how long decisions that need every dependent wait for a resource that cannot be listed. After that it counts as one without objects, as
// a broken aggregated API must not hold up all deletions.
const patience = 30 * time.Second

// monitors are the informers of all collected resources.
type monitors struct {
	metadata   metadata.Interface
	clock      clock.PassiveClock
	graph      *graph
	newKinds   func() // a definition of resources changed
	onSync     func() // a resource has been read for the first time
	mu         sync.RWMutex
	table      *resources
	running    map[schema.GroupResource]*monitor
	goroutines sync.WaitGroup
}

type monitor struct {
	resource resource
	cancel   context.CancelFunc
	synced   cache.DoneChecker
	since    time.Time
}

func newMonitors(client metadata.Interface, clk clock.PassiveClock, g *graph, newKinds, onSync func()) *monitors {
	return &monitors{
		metadata: client, clock: clk, graph: g, newKinds: newKinds, onSync: onSync,
		table: &resources{}, running: map[schema.GroupResource]*monitor{},
	}
}

// update starts monitors of new resources and, if discovery was complete, stops those of resources that are gone.
func (m *monitors) update(ctx context.Context, table *resources, partial bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if partial {
		for gvk, r := range m.table.byKind {
			if _, found := table.byKind[gvk]; !found {
				table.byKind[gvk] = r
			}
		}
	}
	m.table = table
	for gr, running := range m.running {
		wanted, found := table.collected[gr]
		if (!found && !partial) || (found && wanted != running.resource) {
			running.cancel()
			delete(m.running, gr)
			m.graph.removeAll(running.resource)
		}
	}
	for gr, r := range table.collected {
		if m.running[gr] == nil {
			m.running[gr] = m.start(ctx, r)
		}
	}
}

// start runs the informer of one resource. It keeps no more of an object than the graph needs.
func (m *monitors) start(ctx context.Context, r resource) *monitor {
	ctx, cancel := context.WithCancel(ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(m.metadata, r.GroupVersionResource, metav1.NamespaceAll, 0, nil, nil).Informer()
	logger := klog.FromContext(ctx)
	if err := informer.SetTransform(essence); err != nil {
		logger.Error(err, "No transform for a metadata informer", "resource", r.GroupVersionResource)
	}
	registration, err := informer.AddEventHandler(m.handlers(r))
	if err != nil {
		logger.Error(err, "No event handler for a metadata informer", "resource", r.GroupVersionResource)
	}
	m.goroutines.Go(func() {
		informer.RunWithContext(ctx)
	})
	synced := registration.HasSyncedChecker()
	m.goroutines.Go(func() {
		select {
		case <-ctx.Done():
		case <-synced.Done():
			m.onSync()
		}
	})
	return &monitor{resource: r, cancel: cancel, synced: synced, since: m.clock.Now()}
}

func (m *monitors) handlers(r resource) cache.ResourceEventHandler {
	gr := r.GroupResource()
	put := func(o *metav1.PartialObjectMetadata) { m.graph.put(newObject(r, o)) }
	if !definesResources[gr] {
		return controller.Handlers[*metav1.PartialObjectMetadata]{
			Add: put, Update: func(_, o *metav1.PartialObjectMetadata) { put(o) },
			Delete: func(o *metav1.PartialObjectMetadata) { m.graph.remove(o.UID) },
		}
	}
	return controller.Handlers[*metav1.PartialObjectMetadata]{
		Add:    func(o *metav1.PartialObjectMetadata) { put(o); m.newKinds() },
		Update: func(_, o *metav1.PartialObjectMetadata) { put(o); m.newKinds() },
		Delete: func(o *metav1.PartialObjectMetadata) { m.graph.remove(o.UID); m.newKinds() },
	}
}

// definesResources are the resources whose objects bring new resources.
var definesResources = map[schema.GroupResource]bool{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
}

// essence is what the graph reads of an object.
func essence(obj any) (any, error) {
	full, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		OwnerReferences: full.OwnerReferences, Finalizers: full.Finalizers, DeletionTimestamp: full.DeletionTimestamp,
	}}, nil
}

// lookUp finds the resource of a kind.
func (m *monitors) lookUp(gvk schema.GroupVersionKind) (resource, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r, found := m.table.byKind[gvk]
	return r, found
}

// complete tells whether the graph shows all objects there are, and if not, how long to wait at most.
func (m *monitors) complete() (bool, time.Duration) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	wait := time.Duration(0)
	for _, running := range m.running {
		if !cache.IsDone(running.synced) {
			wait = max(wait, running.since.Add(patience).Sub(m.clock.Now()))
		}
	}
	return wait <= 0 && len(m.running) > 0, wait
}

func (m *monitors) stopAll() {
	m.mu.Lock()
	for _, running := range m.running {
		running.cancel()
	}
	m.mu.Unlock()
	m.goroutines.Wait()
}
