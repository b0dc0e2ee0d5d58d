package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bayplan/bayplan/internal/controller"
)

// delete deletes the object as the graph or a fresh read shows it. If it has changed since, the API server refuses with a conflict.
func (c *Controller) delete(ctx context.Context, o *object, policy metav1.DeletionPropagation) error {
	err := c.client(o).Delete(ctx, o.name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &o.uid, ResourceVersion: &o.resourceVersion},
		PropagationPolicy: &policy,
	})
	return controller.IgnoreNotFound(err)
}

// patch replaces parts of the metadata of the object in exactly the state in which it was read.
func (c *Controller) patch(ctx context.Context, o *object, resourceVersion string, fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = o.uid, resourceVersion
	body, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return err
	}
	_, err = c.client(o).Patch(ctx, o.name, types.MergePatchType, body, metav1.PatchOptions{})
	return controller.IgnoreNotFound(err)
}

func (c *Controller) writeOwners(ctx context.Context, o *object, refs []metav1.OwnerReference) error {
	return c.patch(ctx, o, o.resourceVersion, map[string]any{"ownerReferences": refs})
}

// unblock lets the owners of an object go before it.
func (c *Controller) unblock(ctx context.Context, o *object) error {
	refs := slices.Clone(o.owners)
	no := false
	for i := range refs {
		refs[i].BlockOwnerDeletion = &no
	}
	if slices.EqualFunc(refs, o.owners, func(a, b metav1.OwnerReference) bool {
		return b.BlockOwnerDeletion != nil && *a.BlockOwnerDeletion == *b.BlockOwnerDeletion
	}) {
		return nil
	}
	if err := c.writeOwners(ctx, o, refs); err != nil {
		return err
	}
	return apierrors.NewConflict(o.resource.GroupResource(), o.name, errors.New("its references were just changed"))
}

// deleteDependents is foreground deletion: the object goes when none of the dependents that hold it is left.
func (c *Controller) deleteDependents(ctx context.Context, o *object) error {
	blocked := false
	for _, dependent := range c.graph.dependentsOf(o.uid) {
		if !dependent.blocks(o.uid) {
			continue
		}
		blocked = true
		if !dependent.deleting {
			c.Add(string(dependent.uid))
		}
	}
	if blocked {
		return nil
	}
	return c.removeFinalizer(ctx, o, metav1.FinalizerDeleteDependents)
}

// orphanDependents is orphaning deletion: the dependents lose their reference, then the object goes.
func (c *Controller) orphanDependents(ctx context.Context, o *object) error {
	var errs []error
	for _, dependent := range c.graph.dependentsOf(o.uid) {
		if err := c.disown(ctx, dependent, o.uid); err != nil {
			errs = append(errs, fmt.Errorf("orphan %s %s/%s: %w", dependent.resource.kind, dependent.namespace, dependent.name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.removeFinalizer(ctx, o, metav1.FinalizerOrphanDependents)
}

// disown takes the reference to an owner from a dependent.
func (c *Controller) disown(ctx context.Context, dependent *object, owner types.UID) error {
	without := func(refs []metav1.OwnerReference) []metav1.OwnerReference {
		return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
	}
	err := c.writeOwners(ctx, dependent, without(dependent.owners))
	if !apierrors.IsConflict(err) {
		return err
	}
	fresh, err := c.client(dependent).Get(ctx, dependent.name, metav1.GetOptions{})
	if err != nil || fresh.UID != dependent.uid {
		return controller.IgnoreNotFound(err)
	}
	return c.writeOwners(ctx, newObject(dependent.resource, fresh), without(fresh.OwnerReferences))
}

func (c *Controller) removeFinalizer(ctx context.Context, o *object, finalizer string) error {
	fresh, err := c.client(o).Get(ctx, o.name, metav1.GetOptions{})
	if err != nil || fresh.UID != o.uid {
		return controller.IgnoreNotFound(err)
	}
	kept := slices.DeleteFunc(slices.Clone(fresh.Finalizers), func(f string) bool { return f == finalizer })
	if len(kept) == len(fresh.Finalizers) {
		return nil
	}
	return c.patch(ctx, o, fresh.ResourceVersion, map[string]any{"finalizers": kept})
}
