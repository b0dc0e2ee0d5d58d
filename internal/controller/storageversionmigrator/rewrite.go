package storageversionmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// served finds the version through which the resource is reached; none when it is not served or cannot be listed and patched.
func (c *Controller) served(wanted metav1.GroupResource) (schema.GroupVersionResource, error) {
	groups, lists, err := c.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("ask which resources are served: %w", err)
	}
	preferred := ""
	for _, group := range groups {
		if group.Name == wanted.Group {
			preferred = group.PreferredVersion.GroupVersion
		}
	}
	var found schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group != wanted.Group {
			continue
		}
		has := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == wanted.Resource && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "patch")
		})
		if has && (found.Resource == "" || list.GroupVersion == preferred) {
			found = gv.WithResource(wanted.Resource)
		}
	}
	return found, nil
}

// rewrite sends a patch without a change for each object and returns how many have been dealt with. An object that is gone or has been written by somebody
// else since it was listed is done: the API server writes in the current form only.
func (c *Controller) rewrite(ctx context.Context, m *migrationv1.StorageVersionMigration, of schema.GroupVersionResource) (total int, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.metadata.Resource(of).List(ctx, options)
		if err != nil {
			return total, fmt.Errorf("list %s: %w", resourceName(m), err)
		}
		if m.Status.ResourceVersion == "" {
			m.Status.ResourceVersion = page.ResourceVersion
			written, err := c.write(ctx, m)
			if err != nil {
				return total, err
			}
			m.ResourceVersion = written.ResourceVersion
		}
		for i := range page.Items {
			if err := c.touch(ctx, of, &page.Items[i]); err != nil {
				return total, err
			}
			total++
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return total, nil
		}
	}
}

func (c *Controller) touch(ctx context.Context, of schema.GroupVersionResource, o *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion}})
	if err != nil {
		return err
	}
	_, err = c.metadata.Resource(of).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("write %s %s/%s anew: %w", of.Resource, o.Namespace, o.Name, err)
}
