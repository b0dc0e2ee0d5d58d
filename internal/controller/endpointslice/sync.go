package endpointslice

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	if settled, left := c.expectations.Satisfied(key); !settled {
		c.AddAfter(key, left)
		return nil
	}
	service, err := c.services.Services(namespace).Get(name)
	if err != nil {
		c.expectations.Forget(key)
		return controller.IgnoreNotFound(err) // its slices go with their owner
	}
	if service.DeletionTimestamp != nil || service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Selector) == 0 {
		return nil // whoever makes a Service without a selector makes its slices too
	}
	present := c.slicesOf(key)
	for _, s := range present {
		if c.fresh.Stale(s) {
			return nil // the event of our own write is on its way and brings us back
		}
	}
	groups, err := c.want(service)
	if err != nil {
		return err
	}
	err = c.write(ctx, key, fit(service, groups, present))
	if err != nil && controller.IsNamespaceTerminating(err) {
		return nil
	}
	return err
}

// write carries out the changes: first what adds endpoints, then what takes away.
func (c *Controller) write(ctx context.Context, key string, todo changes) error {
	var errs []error
	for _, s := range todo.create {
		errs = append(errs, c.create(ctx, key, s))
	}
	for _, s := range todo.update {
		written, err := c.client.DiscoveryV1().EndpointSlices(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
		if err == nil {
			c.fresh.Wrote(written)
		}
		errs = append(errs, err)
	}
	for _, s := range todo.remove {
		c.expectations.Deleting(key, s.UID)
		err := c.client.DiscoveryV1().EndpointSlices(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
		if err != nil {
			c.expectations.DeleteFailed(key, s.UID)
		}
		errs = append(errs, controller.IgnoreNotFound(err))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write the endpoint slices of Service %s: %w", key, err)
	}
	return nil
}

func (c *Controller) create(ctx context.Context, key string, s *discoveryv1.EndpointSlice) error {
	c.expectations.Creating(key)
	made, err := c.client.DiscoveryV1().EndpointSlices(s.Namespace).Create(ctx, s, metav1.CreateOptions{})
	if err != nil {
		c.expectations.CreateFailed(key)
		return err
	}
	c.expectations.Created(key, made.UID)
	return nil
}
