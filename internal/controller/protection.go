package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Protected is an API object that can be copied.
type Protected[T any] interface {
	metav1.Object
	DeepCopy() T
}

// Protection keeps objects from going, by a finalizer, while others use them.
type Protection[T Protected[T]] struct {
	Finalizer string
	// InUse is asked of objects that are to be deleted.
	InUse func(ctx context.Context, obj T) (bool, error)
	// Update writes the object's metadata.
	Update func(ctx context.Context, obj T) error
}

// Sync gives an object its finalizer, and takes it away from one that is to be deleted and that nobody uses.
func (p Protection[T]) Sync(ctx context.Context, obj T) error {
	finalizers := obj.GetFinalizers()
	held := slices.Contains(finalizers, p.Finalizer)
	if obj.GetDeletionTimestamp() == nil {
		if held {
			return nil
		}
		next := obj.DeepCopy()
		next.SetFinalizers(append(next.GetFinalizers(), p.Finalizer))
		return p.Update(ctx, next)
	}
	if !held {
		return nil
	}
	if used, err := p.InUse(ctx, obj); used || err != nil {
		return err
	}
	next := obj.DeepCopy()
	next.SetFinalizers(slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == p.Finalizer }))
	return IgnoreNotFound(p.Update(ctx, next))
}
