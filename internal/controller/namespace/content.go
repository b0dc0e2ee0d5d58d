package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// parallel is how many resources of one namespace are worked on at the same time.
const parallel = 4

// pageSize bounds what one look at the remaining objects of a resource reads.
const pageSize = 500

// findings is what a pass over a namespace found.
type findings struct {
	mu         sync.Mutex
	remaining  map[schema.GroupVersionResource]left
	finalizers map[string]int
	discovery  []error
	parsing    []error
	content    []error
}

// left is how much is left of a resource.
type left struct {
	count           int
	resourceVersion string
}

func (f *findings) done() bool { return len(f.remaining) == 0 && f.err() == nil }

func (f *findings) err() error {
	return errors.Join(errors.Join(f.discovery...), errors.Join(f.parsing...), errors.Join(f.content...))
}

// resource is a namespaced resource that can be deleted.
type resource struct {
	schema.GroupVersionResource
	collection bool // can be deleted all at once
}

// empty deletes everything in the namespace once: pods, and when those are gone the rest.
func (c *Controller) empty(ctx context.Context, namespace string) *findings {
	found := &findings{remaining: map[schema.GroupVersionResource]left{}, finalizers: map[string]int{}}
	resources := c.discover(found)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	if i := slices.IndexFunc(resources, func(r resource) bool { return r.GroupVersionResource == pods }); i >= 0 {
		c.emptyResource(ctx, namespace, resources[i], found)
		if len(found.remaining) > 0 || len(found.content) > 0 {
			return found
		}
		resources = slices.Delete(resources, i, i+1)
	}
	slots := make(chan struct{}, parallel)
	var work sync.WaitGroup
	for _, r := range resources {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			c.emptyResource(ctx, namespace, r, found)
		})
	}
	work.Wait()
	return found
}

// discover lists the resources whose objects live in namespaces and can be listed and deleted.
func (c *Controller) discover(found *findings) []resource {
	lists, err := c.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		found.discovery = append(found.discovery, err)
	}
	var resources []resource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete", "list"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			found.parsing = append(found.parsing, err)
			continue
		}
		for _, r := range list.APIResources {
			resources = append(resources, resource{gv.WithResource(r.Name), slices.Contains(r.Verbs, "deletecollection")})
		}
	}
	return resources
}

func (c *Controller) emptyResource(ctx context.Context, namespace string, r resource, found *findings) {
	objects := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace)
	err := func() error {
		list, err := objects.List(ctx, metav1.ListOptions{Limit: pageSize})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		if err := deleteAll(ctx, objects, r, list); err != nil {
			return err
		}
		list, err = objects.List(ctx, metav1.ListOptions{Limit: pageSize})
		if err == nil && len(list.Items) > 0 {
			found.note(r, list)
		}
		return err
	}()
	// A resource that is no longer served has nothing left to delete.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		found.mu.Lock()
		defer found.mu.Unlock()
		found.content = append(found.content, fmt.Errorf("%s: %w", r.GroupVersionResource.String(), err))
	}
}

func deleteAll(ctx context.Context, objects metadata.ResourceInterface, r resource, list *metav1.PartialObjectMetadataList) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if r.collection {
		return objects.DeleteCollection(ctx, options, metav1.ListOptions{})
	}
	var errs []error
	for i := range list.Items {
		if err := objects.Delete(ctx, list.Items[i].Name, options); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f *findings) note(r resource, list *metav1.PartialObjectMetadataList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := len(list.Items)
	if list.RemainingItemCount != nil {
		count += int(*list.RemainingItemCount)
	}
	f.remaining[r.GroupVersionResource] = left{count, list.ResourceVersion}
	for i := range list.Items {
		for _, finalizer := range list.Items[i].Finalizers {
			f.finalizers[finalizer]++
		}
	}
}
