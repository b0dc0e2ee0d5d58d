// Package source turns what informers say into calls on the goroutine that owns the scheduler's state.
//
//	informers (goroutines of their own) ──► Mailbox, never full ──► the owner takes everything at once and applies it
//
// An informer may tell a deletion and the creation under the same name as one update; here it becomes two events again,
// because a pod is known by its UID.
package source

import (
	"fmt"
	"slices"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Event is something that the owner has to apply.
type Event func(c *core.Core, now time.Time)

// Source watches the API server.
type Source struct {
	factory informers.SharedInformerFactory
	mailbox *Mailbox[Event]
	synced  []cache.InformerSynced
}

// kind is something to watch.
type kind struct {
	version  schema.GroupVersion
	resource string
	informer func() cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// New registers with the informers that every cluster has; the factory must be started afterwards. Events go to the
// mailbox.
func New(factory informers.SharedInformerFactory, mailbox *Mailbox[Event]) (*Source, error) {
	s := &Source{factory: factory, mailbox: mailbox}
	core := factory.Core().V1()
	for _, each := range []kind{
		{v1.SchemeGroupVersion, "nodes", core.Nodes().Informer, s.nodes()},
		{v1.SchemeGroupVersion, "namespaces", core.Namespaces().Informer, s.namespaces()},
		{v1.SchemeGroupVersion, "pods", core.Pods().Informer, s.pods()},
	} {
		if err := s.register(each); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Source) register(k kind) error {
	registration, err := k.informer().AddEventHandler(k.handler)
	if err != nil {
		return fmt.Errorf("watching %s for the scheduler: %w", k.resource, err)
	}
	s.synced = append(s.synced, registration.HasSynced)
	return nil
}

// Discover registers with the informers of further kinds, as far as the API server has them. Waiting for those that it
// has not would never end.
func (s *Source) Discover(client discovery.DiscoveryInterface) error {
	served := map[schema.GroupVersionResource]bool{}
	for _, k := range slices.Concat(s.further(), s.volumes()) {
		if _, asked := served[k.version.WithResource("")]; !asked {
			served[k.version.WithResource("")] = true
			list, err := client.ServerResourcesForGroupVersion(k.version.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("asking the API server for the kinds of %s: %w", k.version, err)
			}
			if list != nil {
				for _, r := range list.APIResources {
					served[k.version.WithResource(r.Name)] = true
				}
			}
		}
		if served[k.version.WithResource(k.resource)] {
			if err := s.register(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Synced returns functions that report whether what existed at the start is in the mailbox.
func (s *Source) Synced() []cache.InformerSynced { return s.synced }

func (s *Source) nodes() cache.ResourceEventHandler {
	set := func(node *v1.Node) {
		s.mailbox.Put(func(c *core.Core, now time.Time) { c.SetNode(node, now) })
	}
	return handler(
		set,
		func(_, node *v1.Node) { set(node) },
		func(node *v1.Node) {
			s.mailbox.Put(func(c *core.Core, now time.Time) { c.DeleteNode(node.Name, now) })
		},
	)
}

func (s *Source) namespaces() cache.ResourceEventHandler {
	set := func(namespace *v1.Namespace) {
		s.mailbox.Put(func(c *core.Core, now time.Time) { c.SetNamespace(namespace.Name, namespace.Labels, now) })
	}
	return handler(
		set,
		func(_, namespace *v1.Namespace) { set(namespace) },
		func(namespace *v1.Namespace) {
			s.mailbox.Put(func(c *core.Core, _ time.Time) { c.DeleteNamespace(namespace.Name) })
		},
	)
}

func (s *Source) pods() cache.ResourceEventHandler {
	set := func(pod *v1.Pod) {
		s.mailbox.Put(func(c *core.Core, now time.Time) { c.SetPod(pod, now) })
	}
	remove := func(uid types.UID) {
		s.mailbox.Put(func(c *core.Core, now time.Time) { c.DeletePod(uid, now) })
	}
	return handler(
		set,
		func(old, pod *v1.Pod) {
			if old.UID != pod.UID {
				remove(old.UID)
			}
			set(pod)
		},
		func(pod *v1.Pod) { remove(pod.UID) },
	)
}

// handler makes an event handler of functions on typed objects.
func handler[T any](add func(*T), update func(old, now *T), remove func(*T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { add(object.(*T)) },
		UpdateFunc: func(old, object any) {
			if old.(*T) != object.(*T) {
				update(old.(*T), object.(*T))
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if typed, ok := object.(*T); ok {
				remove(typed)
			}
		},
	}
}
