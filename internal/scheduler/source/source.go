// Package source turns what informers say into calls on the goroutine that owns the scheduler's state.
//
//	informers (goroutines of their own) ──► Mailbox, never full ──► the owner takes everything at once and applies it
//
// An informer may tell a deletion and the creation under the same name as one update; here it becomes two events again,
// because a pod is known by its UID.
package source

import (
	"fmt"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Event is something that the owner has to apply.
type Event func(c *core.Core, now time.Time)

// Source watches the API server.
type Source struct {
	mailbox *Mailbox[Event]
	synced  []cache.InformerSynced
}

// New registers with the informers of a factory, which must be started afterwards. Events go to the mailbox.
func New(factory informers.SharedInformerFactory, mailbox *Mailbox[Event]) (*Source, error) {
	s := &Source{mailbox: mailbox}
	for _, each := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"nodes", factory.Core().V1().Nodes().Informer(), s.nodes()},
		{"namespaces", factory.Core().V1().Namespaces().Informer(), s.namespaces()},
		{"pods", factory.Core().V1().Pods().Informer(), s.pods()},
	} {
		registration, err := each.informer.AddEventHandler(each.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s for the scheduler: %w", each.what, err)
		}
		s.synced = append(s.synced, registration.HasSynced)
	}
	return s, nil
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
