package resource

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Scale says how a kind is seen as autoscaling/v1 Scale.
type Scale[T Object] struct {
	Replicas    func(T) int32
	SetReplicas func(T, int32)
	Observed    func(T) int32
	// Selector is the label selector of the pods in its text form.
	Selector func(T) (string, error)
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

type scaleStorage[T Object] struct {
	store   *genericregistry.Store
	kind    *Kind[T]
	version schema.GroupVersion
}

func (s *scaleStorage[T]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy leaves the storage to the resource itself, which shares it.
func (s *scaleStorage[T]) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: the sub-resource is of another group than its resource.
func (s *scaleStorage[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return scaleKind
}

func (s *scaleStorage[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return s.toScale(obj.(T))
}

func (s *scaleStorage[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	scaled := &scaledObject[T]{UpdatedObjectInfo: info, scale: s, name: name, validate: update}
	obj, _, err := s.store.Update(ctx, name, scaled, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := s.toScale(obj.(T))
	return scale, false, err
}

func (s *scaleStorage[T]) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	resource := schema.GroupResource{Group: autoscalingv1.GroupName, Resource: "scales"}
	return rest.NewDefaultTableConvertor(resource).ConvertToTable(ctx, obj, options)
}

func (s *scaleStorage[T]) toScale(obj T) (*autoscalingv1.Scale, error) {
	selector, err := s.kind.Scale.Selector(obj)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: s.kind.Scale.Replicas(obj)},
		Status: autoscalingv1.ScaleStatus{Replicas: s.kind.Scale.Observed(obj), Selector: selector},
	}, nil
}

// scaledObject is the object with the replicas of an updated Scale in it.
type scaledObject[T Object] struct {
	rest.UpdatedObjectInfo
	scale    *scaleStorage[T]
	name     string
	validate rest.ValidateObjectUpdateFunc
}

func (u *scaledObject[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	object := old.DeepCopyObject().(T)
	resource := u.scale.version.WithResource(u.scale.kind.Resource)
	if object.GetName() == "" {
		return nil, apierrors.NewNotFound(resource.GroupResource(), u.name)
	}
	before, err := u.scale.toScale(object)
	if err != nil {
		return nil, err
	}
	handler := u.managedFields(object)
	before.ManagedFields, err = handler.ToSubresource()
	if err != nil {
		return nil, err
	}
	after, err := u.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := after.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s/scale takes a Scale of %s, not a %T", resource.Resource, autoscalingv1.SchemeGroupVersion, after))
	}
	if err := u.check(ctx, scale, before); err != nil {
		return nil, err
	}
	u.scale.kind.Scale.SetReplicas(object, scale.Spec.Replicas)
	object.SetResourceVersion(scale.ResourceVersion)
	fields, err := handler.ToParent(scale.ManagedFields)
	object.SetManagedFields(fields)
	return object, err
}

func (u *scaledObject[T]) managedFields(object T) *managedfields.ScaleHandler {
	version := u.scale.version
	return managedfields.NewScaleHandler(object.GetManagedFields(), version, managedfields.ResourcePathMappings{
		version.String(): fieldpath.MakePathOrDie("spec", "replicas"),
	})
}

func (u *scaledObject[T]) check(ctx context.Context, scale, before *autoscalingv1.Scale) error {
	var errs field.ErrorList
	if scale.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"))
	}
	if scale.UID != "" && scale.UID != before.UID {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "uid"), scale.UID, "field is immutable"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(scaleKind.GroupKind(), scale.Name, errs)
	}
	if u.validate != nil {
		return u.validate(ctx, scale, before)
	}
	return nil
}
