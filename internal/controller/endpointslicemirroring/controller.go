// Package endpointslicemirroring copies Endpoints that people make, for Services without a selector, into EndpointSlices: proxies and DNS read only those.
//
// Endpoints, Service and slice events lead to a sync of the name that they share. A sync works out the slices that the Endpoints stand for, one for each
// address family and set of ports (want.go), and changes those of this controller into them.
package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "endpointslice-mirroring-controller"

// ManagedBy marks the slices of this controller.
const ManagedBy = "endpointslicemirroring-controller.k8s.io"

// leaderAnnotation marks Endpoints that are the lock of an old leader election and change every few seconds.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Controller mirrors Endpoints.
type Controller struct {
	*controller.Loop
	client       kubernetes.Interface
	recorder     record.EventRecorder
	expectations *controller.Expectations
	fresh        *controller.Freshness
	endpoints    corelisters.EndpointsLister
	services     corelisters.ServiceLister
	slices       discoverylisters.EndpointSliceLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, all := deps.Informers.Core().V1(), deps.Informers.Discovery().V1().EndpointSlices()
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder(Name), expectations: controller.NewExpectations(deps.Clock), fresh: controller.NewFreshness(),
		endpoints: core.Endpoints().Lister(), services: core.Services().Lister(), slices: all.Lister(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(core.Endpoints().Informer(), controller.OnAny(func(e *corev1.Endpoints) { c.AddObject(e) })); err != nil {
		return nil, err
	}
	if err := c.Handle(core.Services().Informer(), controller.OnAny(func(s *corev1.Service) { c.AddObject(s) })); err != nil {
		return nil, err
	}
	return c, c.Handle(all.Informer(), controller.Handlers[*discoveryv1.EndpointSlice]{
		Add: c.sliceChanged, Update: func(_, s *discoveryv1.EndpointSlice) { c.sliceChanged(s) }, Delete: c.sliceGone,
	})
}

func keyOf(s *discoveryv1.EndpointSlice) (string, bool) {
	return s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName], s.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

func (c *Controller) sliceChanged(s *discoveryv1.EndpointSlice) {
	if key, ours := keyOf(s); ours {
		c.expectations.ObservedAdd(key, s.UID)
		c.Add(key)
	}
}

func (c *Controller) sliceGone(s *discoveryv1.EndpointSlice) {
	c.fresh.Forget(s.UID)
	if key, ours := keyOf(s); ours {
		c.expectations.ObservedGone(key, s.UID)
		c.Add(key)
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	if settled, left := c.expectations.Satisfied(key); !settled {
		c.AddAfter(key, left)
		return nil
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	present, err := c.slices.EndpointSlices(namespace).List(labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: ManagedBy,
	}))
	if err != nil {
		return err
	}
	for _, s := range present {
		if c.fresh.Stale(s) {
			return nil // the event of our own write is on its way and brings us back
		}
	}
	endpoints, err := c.mirrored(namespace, name)
	if err != nil {
		return err
	}
	var wanted map[string]*discoveryv1.EndpointSlice
	if endpoints != nil {
		wanted = c.want(endpoints)
	}
	if err := c.write(ctx, key, wanted, present); err != nil && !controller.IsNamespaceTerminating(err) {
		return fmt.Errorf("mirror Endpoints %s to EndpointSlices: %w", key, err)
	}
	return nil
}

// mirrored returns the Endpoints if they are to be mirrored. Those of Services with a selector are a controller's, which makes slices too.
func (c *Controller) mirrored(namespace, name string) (*corev1.Endpoints, error) {
	endpoints, err := c.endpoints.Endpoints(namespace).Get(name)
	if err != nil {
		return nil, controller.IgnoreNotFound(err)
	}
	service, err := c.services.Services(namespace).Get(name)
	if err != nil {
		return nil, controller.IgnoreNotFound(err)
	}
	_, lock := endpoints.Annotations[leaderAnnotation]
	if lock || endpoints.Labels[discoveryv1.LabelSkipMirror] == "true" || endpoints.DeletionTimestamp != nil || len(service.Spec.Selector) > 0 {
		return nil, nil
	}
	return endpoints, nil
}

// write turns the slices that are there into those that are wanted. A slice's family and ports never change: they are what it is found by.
func (c *Controller) write(ctx context.Context, key string, wanted map[string]*discoveryv1.EndpointSlice, present []*discoveryv1.EndpointSlice) error {
	var errs []error
	client := c.client.DiscoveryV1()
	for _, s := range present {
		w := wanted[groupKey(s)]
		delete(wanted, groupKey(s))
		if w == nil {
			errs = append(errs, c.remove(ctx, key, s))
			continue
		}
		if equality.Semantic.DeepEqual(w.Endpoints, s.Endpoints) && equality.Semantic.DeepEqual(w.Labels, s.Labels) && equality.Semantic.DeepEqual(w.Annotations, s.Annotations) {
			continue
		}
		next := s.DeepCopy()
		next.Endpoints, next.Labels, next.Annotations = w.Endpoints, w.Labels, w.Annotations
		written, err := client.EndpointSlices(s.Namespace).Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			c.fresh.Wrote(written)
		}
		errs = append(errs, err)
	}
	for _, group := range slices.Sorted(maps.Keys(wanted)) {
		w := wanted[group]
		c.expectations.Creating(key)
		made, err := client.EndpointSlices(w.Namespace).Create(ctx, w, metav1.CreateOptions{})
		if err != nil {
			c.expectations.CreateFailed(key)
			errs = append(errs, err)
			continue
		}
		c.expectations.Created(key, made.UID)
	}
	return errors.Join(errs...)
}

func (c *Controller) remove(ctx context.Context, key string, s *discoveryv1.EndpointSlice) error {
	if s.DeletionTimestamp != nil {
		return nil
	}
	c.expectations.Deleting(key, s.UID)
	err := c.client.DiscoveryV1().EndpointSlices(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if err != nil {
		c.expectations.DeleteFailed(key, s.UID)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
