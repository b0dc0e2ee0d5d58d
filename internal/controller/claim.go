package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Claimer decides which objects belong to an owner and writes what follows from it: it adopts those that match the owner's
// selector and have no controller, and releases those that it owns but that no longer match.
type Claimer[T metav1.Object] struct {
	Owner    metav1.Object
	Kind     schema.GroupVersionKind
	Selector labels.Selector
	// Match narrows what is adopted beyond the selector, and releases what it does not hold for; it may be nil.
	Match func(T) bool
	// Fresh reads the owner from the API server itself. Before the first adoption it must still be there, be the same object
	// and not be on its way out: otherwise a new owner of the same name could lose its objects to an old one.
	Fresh func(ctx context.Context) (metav1.Object, error)
	// Patch writes a patch of the object's metadata.
	Patch func(ctx context.Context, obj T, patchType types.PatchType, patch []byte) error
	// Finalizers are added on adoption and removed on release.
	Finalizers []string

	mayAdopt error
	asked    bool
}

// Claim returns the candidates that belong to the owner, in their order.
func (c *Claimer[T]) Claim(ctx context.Context, candidates []T) ([]T, error) {
	var mine []T
	var errs []error
	for _, obj := range candidates {
		belongs, err := c.claim(ctx, obj)
		if err != nil {
			errs = append(errs, err)
		} else if belongs {
			mine = append(mine, obj)
		}
	}
	return mine, errors.Join(errs...)
}

func (c *Claimer[T]) claim(ctx context.Context, obj T) (bool, error) {
	matches := c.Selector.Matches(labels.Set(obj.GetLabels())) && (c.Match == nil || c.Match(obj))
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != c.Owner.GetUID():
			return false, nil
		case matches:
			return true, nil
		case c.Owner.GetDeletionTimestamp() != nil:
			return false, nil
		}
		return false, IgnoreNotFound(c.release(ctx, obj))
	}
	if !matches || c.Owner.GetDeletionTimestamp() != nil || obj.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if obj.GetNamespace() != c.Owner.GetNamespace() {
		return false, nil
	}
	err := c.adopt(ctx, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (c *Claimer[T]) adopt(ctx context.Context, obj T) error {
	if err := c.checkOwner(ctx); err != nil {
		return fmt.Errorf("adopt %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	meta := map[string]any{
		"uid":             obj.GetUID(),
		"ownerReferences": []any{metav1.NewControllerRef(c.Owner, c.Kind)},
	}
	if len(c.Finalizers) > 0 {
		meta["finalizers"] = c.Finalizers
	}
	return c.patch(ctx, obj, meta)
}

func (c *Claimer[T]) release(ctx context.Context, obj T) error {
	meta := map[string]any{
		"uid":             obj.GetUID(),
		"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}},
	}
	if len(c.Finalizers) > 0 {
		meta["$deleteFromPrimitiveList/finalizers"] = c.Finalizers
	}
	err := c.patch(ctx, obj, meta)
	if apierrors.IsInvalid(err) {
		// The object is another one of the same name (its UID is immutable), or the reference is already gone.
		return nil
	}
	return err
}

// patch writes metadata with the UID as a precondition.
func (c *Claimer[T]) patch(ctx context.Context, obj T, meta map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	return c.Patch(ctx, obj, types.StrategicMergePatchType, body)
}

func (c *Claimer[T]) checkOwner(ctx context.Context) error {
	if c.asked {
		return c.mayAdopt
	}
	c.asked = true
	fresh, err := c.Fresh(ctx)
	switch {
	case err != nil:
		c.mayAdopt = err
	case fresh.GetUID() != c.Owner.GetUID():
		c.mayAdopt = fmt.Errorf("%s %s/%s is gone: the one of that name has UID %s, not %s",
			c.Kind.Kind, c.Owner.GetNamespace(), c.Owner.GetName(), fresh.GetUID(), c.Owner.GetUID())
	case fresh.GetDeletionTimestamp() != nil:
		c.mayAdopt = fmt.Errorf("%s %s/%s is being deleted", c.Kind.Kind, c.Owner.GetNamespace(), c.Owner.GetName())
	}
	return c.mayAdopt
}
