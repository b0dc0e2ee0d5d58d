// Package namespace empties namespaces that are being deleted and then lets them go.
//
// A sync of a terminating namespace asks discovery for every resource that lives in namespaces, deletes the contents by collection (pods first, so
// that nothing they use disappears under them), and writes what remains into the namespace's conditions. While something remains a
// watch counts it down and brings the next sync when it is gone. When nothing is left, the finalizer "kubernetes" is removed through
// the sub-resource finalize, and the API server removes the namespace.
package namespace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "namespace-controller"

// recheck is after what time a namespace with remaining content is looked at again even if no watch reported anything.
const recheck = 10 * time.Second

// Controller deletes the contents of namespaces.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	metadata   metadata.Interface
	discovery  discovery.DiscoveryInterface
	clock      clock.PassiveClock
	namespaces corelisters.NamespaceLister
	countdowns *countdowns
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	namespaces := deps.Informers.Core().V1().Namespaces()
	c := &Controller{
		client: deps.Client, metadata: deps.Metadata, discovery: deps.Discovery, clock: deps.Clock, namespaces: namespaces.Lister(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.countdowns = newCountdowns(c.Add)
	return c, c.Handle(namespaces.Informer(), controller.Handlers[*corev1.Namespace]{
		Add: c.changed,
		Update: func(old, ns *corev1.Namespace) {
			// Our own writes of conditions must not start the next pass.
			if old.DeletionTimestamp == nil || len(old.Spec.Finalizers) != len(ns.Spec.Finalizers) {
				c.changed(ns)
			}
		},
		Delete: func(ns *corev1.Namespace) { c.countdowns.stop(ns.Name) },
	})
}

func (c *Controller) changed(ns *corev1.Namespace) {
	if ns.DeletionTimestamp != nil {
		c.Add(ns.Name)
	}
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.Loop.Run(ctx)
	c.countdowns.stopAll()
}

func (c *Controller) sync(ctx context.Context, name string) error {
	cached, err := c.namespaces.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if cached.DeletionTimestamp == nil || !slices.Contains(cached.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil
	}
	// Deletion cannot be undone: what is deleted is decided by the namespace as it is now, not by a cache.
	ns, err := c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ns.UID != cached.UID || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil
	}
	c.countdowns.stop(name)
	found := c.empty(ctx, name)
	if !found.done() {
		c.await(ctx, name, found)
	}
	ns, err = c.writeConditions(ctx, ns, found)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if found.done() {
		return c.release(ctx, ns)
	}
	return found.err()
}

// await brings the namespace back when what remains is gone.
func (c *Controller) await(ctx context.Context, name string, found *findings) {
	c.AddAfter(name, recheck)
	for gvr, left := range found.remaining {
		c.countdowns.start(ctx, name, c.metadata.Resource(gvr).Namespace(name), left)
	}
}

func (c *Controller) release(ctx context.Context, ns *corev1.Namespace) error {
	ns = ns.DeepCopy()
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := c.client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of namespace %s: %w", ns.Name, err)
	}
	return nil
}
