// Package endpoint publishes the pods of Services as Endpoints objects, the form from before EndpointSlices that older clients still read.
//
// Service and pod events lead to syncs of the Services concerned, which replace the subsets of the Endpoints object of the same name if they
// differ. See README.md for the rules.
package endpoint

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "endpoints-controller"

// managedByLabel marks what this controller writes, so that it is not mirrored into slices a second time.
const (
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	managedBy      = "endpoint-controller"
)

// Controller publishes Endpoints.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	services  corelisters.ServiceLister
	pods      corelisters.PodLister
	endpoints corelisters.EndpointsLister //nolint:staticcheck // the old form is this controller's purpose
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	c := &Controller{client: deps.Client, services: core.Services().Lister(), pods: core.Pods().Lister(), endpoints: core.Endpoints().Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(core.Services().Informer(), controller.OnAny(func(s *corev1.Service) { c.AddObject(s) })); err != nil {
		return nil, err
	}
	if err := c.Handle(core.Endpoints().Informer(), controller.Handlers[*corev1.Endpoints]{
		Delete: func(e *corev1.Endpoints) { c.AddObject(e) }}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podChanged, Delete: c.podChanged, Update: c.podUpdated})
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

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return c.remove(ctx, namespace, name)
	} else if err != nil {
		return err
	}
	if service.DeletionTimestamp != nil || service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Selector) == 0 {
		return nil
	}
	pods, err := c.pods.Pods(namespace).List(labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return err
	}
	wanted := endpointsOf(service, pods)
	current, err := c.endpoints.Endpoints(namespace).Get(name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.client.CoreV1().Endpoints(namespace).Create(ctx, wanted, metav1.CreateOptions{})
	case err == nil && !(equality.Semantic.DeepEqual(current.Subsets, wanted.Subsets) && maps.Equal(current.Labels, wanted.Labels)):
		wanted.ResourceVersion, wanted.Annotations = current.ResourceVersion, mergedAnnotations(current.Annotations, wanted.Annotations)
		_, err = c.client.CoreV1().Endpoints(namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil && !controller.IsNamespaceTerminating(err) {
		return fmt.Errorf("write Endpoints %s: %w", key, err)
	}
	return nil
}

func mergedAnnotations(current, wanted map[string]string) map[string]string {
	out := maps.Clone(current)
	delete(out, corev1.EndpointsOverCapacity)
	if out == nil {
		return wanted
	}
	maps.Copy(out, wanted)
	return out
}

// remove deletes the Endpoints of a Service that is gone, if it is one of ours.
func (c *Controller) remove(ctx context.Context, namespace, name string) error {
	current, err := c.endpoints.Endpoints(namespace).Get(name)
	if err != nil || current.Labels[managedByLabel] != managedBy {
		return controller.IgnoreNotFound(err)
	}
	return controller.IgnoreNotFound(c.client.CoreV1().Endpoints(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(current.UID))}))
}
