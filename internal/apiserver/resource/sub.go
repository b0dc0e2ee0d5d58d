package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Sub is a sub-resource that writes a part of an object.
type Sub[T Object] struct {
	// Prepare puts back from old all that the sub-resource does not write.
	Prepare  func(ctx context.Context, obj, old T)
	Validate func(obj, old T) field.ErrorList
	// Reset are the fields that Prepare puts back, for server-side apply.
	Reset *fieldpath.Set
}

// subStrategy is for writes to a sub-resource other than status.
type subStrategy[T Object] struct {
	strategy[T]
	sub Sub[T]
}

func (s subStrategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, former := obj.(T), old.(T)
	forgetVersion(former)
	s.sub.Prepare(ctx, object, former)
	if s.kind.Generation {
		object.SetGeneration(former.GetGeneration())
		if contentDiffers(object, former) {
			object.SetGeneration(former.GetGeneration() + 1)
		}
	}
}

func (s subStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	object, former := obj.(T), old.(T)
	errs := validation.ValidateObjectMetaAccessorUpdate(object, former, field.NewPath("metadata"))
	return append(errs, s.sub.Validate(object, former)...)
}

func (s subStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s subStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.inVersions(s.sub.Reset)
}
