package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is how objects of a kind are created, updated and deleted, in the form that the registry wants.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind     *Kind[T]
	versions []schema.GroupVersion
}

func (s strategy[T]) NamespaceScoped() bool { return !s.kind.ClusterWide }

func (s strategy[T]) Canonicalize(runtime.Object) {}

func (s strategy[T]) AllowCreateOnUpdate(context.Context) bool { return s.kind.AllowCreateOnUpdate }

func (s strategy[T]) AllowUnconditionalUpdate(context.Context) bool {
	return !s.kind.RequireResourceVersion
}

func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	object := obj.(T)
	if s.kind.HasStatus && !s.kind.CreateWithStatus {
		clearStatus(object)
	}
	if s.kind.Generation {
		object.SetGeneration(1)
	}
	if s.kind.PrepareCreate != nil {
		s.kind.PrepareCreate(ctx, object)
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, former := obj.(T), old.(T)
	forgetVersion(former)
	if s.kind.HasStatus {
		keepStatus(object, former)
	}
	if s.kind.PrepareUpdate != nil {
		s.kind.PrepareUpdate(ctx, object, former)
	}
	if s.kind.Generation {
		object.SetGeneration(former.GetGeneration())
		if contentDiffers(object, former) {
			object.SetGeneration(former.GetGeneration() + 1)
		}
	}
}

func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	object := obj.(T)
	errs := validation.ValidateObjectMetaAccessor(object, !s.kind.ClusterWide, s.nameCheck(), field.NewPath("metadata"))
	if s.kind.Validate != nil {
		errs = append(errs, s.kind.Validate(object)...)
	}
	return errs
}

func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	object, former := obj.(T), old.(T)
	errs := validation.ValidateObjectMetaAccessorUpdate(object, former, field.NewPath("metadata"))
	if s.kind.ValidateUpdate != nil {
		errs = append(errs, s.kind.ValidateUpdate(object, former)...)
	} else if s.kind.Validate != nil && contentDiffers(object, former) {
		// An object that became invalid by a later rule can still be relabelled.
		errs = append(errs, s.kind.Validate(object)...)
	}
	return errs
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.warnings(obj)
}

func (s strategy[T]) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return s.warnings(obj)
}

func (s strategy[T]) warnings(obj runtime.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(obj.(T))
}

func (s strategy[T]) nameCheck() validation.ValidateNameFunc {
	if s.kind.ValidateName != nil {
		return s.kind.ValidateName
	}
	return validation.NameIsDNSSubdomain
}

// GetResetFields says to server-side apply which fields a write to the resource itself never changes.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if !s.kind.HasStatus {
		return nil
	}
	return s.inVersions(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
}

func (s strategy[T]) inVersions(set *fieldpath.Set) map[fieldpath.APIVersion]*fieldpath.Set {
	out := make(map[fieldpath.APIVersion]*fieldpath.Set, len(s.versions))
	for _, version := range s.versions {
		out[fieldpath.APIVersion(version.String())] = set
	}
	return out
}

// DefaultGarbageCollectionPolicy says what becomes of dependents when a deletion does not say it.
func (s strategy[T]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	if s.kind.OrphanByDefault {
		return rest.OrphanDependents
	}
	return rest.DeleteDependents
}

// gracefulStrategy is the strategy of a kind whose objects are given time to end.
type gracefulStrategy[T Object] struct{ strategy[T] }

func (s gracefulStrategy[T]) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	return s.kind.GracefulDelete(obj.(T), options)
}

// statusStrategy is for writes to the sub-resource "status".
type statusStrategy[T Object] struct{ strategy[T] }

func (s statusStrategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, former := obj.(T), old.(T)
	forgetVersion(former)
	keepContent(object, former)
	object.SetGeneration(former.GetGeneration())
	object.SetOwnerReferences(former.GetOwnerReferences())
	object.SetDeletionTimestamp(former.GetDeletionTimestamp())
	if s.kind.StatusKeepsLabels {
		object.SetLabels(former.GetLabels())
	}
	if s.kind.PrepareStatus != nil {
		s.kind.PrepareStatus(ctx, object, former)
	}
}

func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	object, former := obj.(T), old.(T)
	errs := validation.ValidateObjectMetaAccessorUpdate(object, former, field.NewPath("metadata"))
	if s.kind.ValidateStatus != nil {
		errs = append(errs, s.kind.ValidateStatus(object, former)...)
	}
	return errs
}

func (s statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range contentFields(s.kind.New()) {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	set.Insert(fieldpath.MakePathOrDie("metadata", "ownerReferences"))
	set.Insert(fieldpath.MakePathOrDie("metadata", "deletionTimestamp"))
	return s.inVersions(set)
}

// forgetVersion clears the version that server-side apply leaves on the object that it read: objects inside the server have none. Else an object would differ
// from an equal one that a client applied, and every repeated apply would be a change.
func forgetVersion(obj runtime.Object) {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}

var (
	_ rest.RESTCreateStrategy         = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTUpdateStrategy         = statusStrategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTGracefulDeleteStrategy = gracefulStrategy[*metav1.PartialObjectMetadata]{}
	_ rest.ResetFieldsStrategy        = strategy[*metav1.PartialObjectMetadata]{}
)

// semanticEqual treats an empty slice or map as an absent one, and quantities by value.
func semanticEqual(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
