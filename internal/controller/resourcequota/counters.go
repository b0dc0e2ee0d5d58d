package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// counters are informers, by metadata, of the resources that some quota counts. One is started by the first quota that asks for it.
type counters struct {
	metadata   metadata.Interface
	discovery  discovery.DiscoveryInterface
	added      func(namespace string)
	deleted    func(namespace string)
	mu         sync.Mutex
	informers  map[schema.GroupResource]cache.SharedIndexInformer
	goroutines sync.WaitGroup
}

func newCounters(deps controller.Deps, added, deleted func(namespace string)) *counters {
	return &counters{
		metadata: deps.Metadata, discovery: deps.Discovery, added: added, deleted: deleted, informers: map[schema.GroupResource]cache.SharedIndexInformer{},
	}
}

// count is the number of objects of a resource in a namespace. A resource that is not served has none.
func (c *counters) count(ctx context.Context, gr schema.GroupResource, namespace string) (int, error) {
	informer, err := c.informer(ctx, gr)
	if err != nil || informer == nil {
		return 0, err
	}
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return 0, fmt.Errorf("stopped before the first list of %s", gr)
	}
	keys, err := informer.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace)
	return len(keys), err
}

func (c *counters) informer(ctx context.Context, gr schema.GroupResource) (cache.SharedIndexInformer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if informer := c.informers[gr]; informer != nil {
		return informer, nil
	}
	gvr, err := c.find(gr)
	if err != nil || gvr.Empty() {
		return nil, err
	}
	informer := metadatainformer.NewFilteredMetadataInformer(c.metadata, gvr, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
	if err := informer.SetTransform(nameOnly); err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(controller.Handlers[*metav1.PartialObjectMetadata]{
		Add:    func(o *metav1.PartialObjectMetadata) { c.added(o.Namespace) },
		Delete: func(o *metav1.PartialObjectMetadata) { c.deleted(o.Namespace) },
	}); err != nil {
		return nil, err
	}
	c.informers[gr] = informer
	c.goroutines.Go(func() { informer.RunWithContext(ctx) })
	return informer, nil
}

// find asks discovery for the version in which to watch a resource.
func (c *counters) find(gr schema.GroupResource) (schema.GroupVersionResource, error) {
	lists, err := c.discovery.ServerPreferredNamespacedResources()
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil || gv.Group != gr.Group {
			continue
		}
		for _, r := range list.APIResources {
			if r.Name == gr.Resource && slices.Contains(r.Verbs, "watch") {
				return gv.WithResource(r.Name), nil
			}
		}
	}
	return schema.GroupVersionResource{}, err
}

func nameOnly(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}, nil
}

func (c *counters) wait() { c.goroutines.Wait() }
