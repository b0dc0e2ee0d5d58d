// Package endpointslice publishes the pods of Services as EndpointSlices, which proxies and DNS read.
//
// Service, pod, slice and node events lead to syncs of the Services concerned. A sync works out the endpoints from the pods that the Service selects, one for
// each pod and address family, grouped by the ports on which the pods serve (want.go). It then changes as few slices as it can: endpoints stay where
// they are, free room is filled before new slices are made, and no slice holds more than a hundred (fit.go). See README.md for the rules.
package endpointslice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "endpointslice-controller"

// ManagedBy marks the slices of this controller.
const ManagedBy = "endpointslice-controller.k8s.io"

// serviceIndex finds slices by the key of their Service.
const serviceIndex = "bayplan.service"

// Controller publishes EndpointSlices.
type Controller struct {
	*controller.Loop
	client       kubernetes.Interface
	expectations *controller.Expectations
	fresh        *controller.Freshness
	services     corelisters.ServiceLister
	pods         corelisters.PodLister
	nodes        corelisters.NodeLister
	slices       cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, slices := deps.Informers.Core().V1(), deps.Informers.Discovery().V1().EndpointSlices().Informer()
	if _, found := slices.GetIndexer().GetIndexers()[serviceIndex]; !found {
		if err := slices.AddIndexers(cache.Indexers{serviceIndex: func(obj any) ([]string, error) {
			if key, ours := serviceKey(obj.(*discoveryv1.EndpointSlice)); ours {
				return []string{key}, nil
			}
			return nil, nil
		}}); err != nil {
			return nil, err
		}
	}
	c := &Controller{
		client: deps.Client, expectations: controller.NewExpectations(deps.Clock), fresh: controller.NewFreshness(),
		services: core.Services().Lister(), pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), slices: slices.GetIndexer(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.Reads(core.Nodes().Informer())
	if err := c.Handle(core.Services().Informer(), controller.Handlers[*corev1.Service]{
		Add: func(s *corev1.Service) { c.AddObject(s) }, Update: func(_, s *corev1.Service) { c.AddObject(s) }, Delete: c.serviceDeleted,
	}); err != nil {
		return nil, err
	}
	if err := c.Handle(slices, controller.Handlers[*discoveryv1.EndpointSlice]{
		Add: c.sliceChanged, Update: func(_, s *discoveryv1.EndpointSlice) { c.sliceChanged(s) }, Delete: c.sliceGone,
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podChanged, Update: c.podUpdated, Delete: c.podChanged})
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// serviceKey is the key of the Service of a slice, if this controller manages it.
func serviceKey(s *discoveryv1.EndpointSlice) (string, bool) {
	return s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName], s.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

func (c *Controller) serviceDeleted(s *corev1.Service) {
	c.expectations.Forget(keyOf(s))
	c.AddObject(s)
}

func (c *Controller) sliceChanged(s *discoveryv1.EndpointSlice) {
	if key, ours := serviceKey(s); ours {
		c.expectations.ObservedAdd(key, s.UID)
		c.Add(key)
	}
}

func (c *Controller) sliceGone(s *discoveryv1.EndpointSlice) {
	c.fresh.Forget(s.UID)
	if key, ours := serviceKey(s); ours {
		c.expectations.ObservedGone(key, s.UID)
		c.Add(key)
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	relabelled := !equality.Semantic.DeepEqual(old.Labels, pod.Labels)
	if relabelled {
		c.podChanged(old)
	}
	if relabelled || controller.EndpointChange(old, pod) {
		c.podChanged(pod)
	}
}

// podChanged wakes the Services that select the pod.
func (c *Controller) podChanged(pod *corev1.Pod) {
	services, err := c.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, s := range services {
		if len(s.Spec.Selector) > 0 && labels.SelectorFromValidatedSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			c.AddObject(s)
		}
	}
}

// slicesOf lists the cached slices of a Service that are not being deleted.
func (c *Controller) slicesOf(key string) []*discoveryv1.EndpointSlice {
	objs, err := c.slices.ByIndex(serviceIndex, key)
	if err != nil {
		panic(err) // New adds the index
	}
	var out []*discoveryv1.EndpointSlice
	for _, obj := range objs {
		if s := obj.(*discoveryv1.EndpointSlice); s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}
