package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ensureDefinitions makes the definitions of Bayplan's own types in the API as this version has them, and returns when they are served.
func (c *Cluster) ensureDefinitions(ctx context.Context) error {
	config := c.control.server.ClientConfig(&user.DefaultInfo{Name: "bayplan:definitions", Groups: []string{user.SystemPrivilegedGroup}})
	config.ContentConfig = c.admin.ContentConfig // objects without Go types are in JSON
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions, err := v1alpha1.Definitions()
	if err != nil {
		return err
	}
	for _, d := range definitions {
		resource := client.Resource(definitionsResource)
		applied, err := resource.Apply(ctx, d.GetName(), d, metav1.ApplyOptions{FieldManager: "bayplan", Force: true})
		if err == nil {
			err = awaitEstablished(ctx, resource, applied)
		}
		if err != nil {
			return fmt.Errorf("defining %s: %w", d.GetName(), err)
		}
	}
	return nil
}

// awaitEstablished returns when the resource of a definition is served.
func awaitEstablished(ctx context.Context, client dynamic.ResourceInterface, definition *unstructured.Unstructured) error {
	if isEstablished(definition) {
		return nil
	}
	w, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + definition.GetName(), ResourceVersion: definition.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			u, is := event.Object.(*unstructured.Unstructured)
			switch {
			case !ok || event.Type == watch.Error || event.Type == watch.Deleted:
				return fmt.Errorf("it was lost sight of (%v)", event.Object)
			case is && isEstablished(u):
				return nil
			}
		}
	}
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
