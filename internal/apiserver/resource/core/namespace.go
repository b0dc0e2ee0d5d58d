package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/dryrun"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func namespace() *resource.Kind[*corev1.Namespace] {
	return &resource.Kind[*corev1.Namespace]{
		Resource:     "namespaces",
		ShortNames:   []string{"ns"},
		ClusterWide:  true,
		HasStatus:    true,
		New:          func() *corev1.Namespace { return &corev1.Namespace{} },
		NewList:      func() runtime.Object { return &corev1.NamespaceList{} },
		ValidateName: validation.ValidateNamespaceName,
		Default: func(n *corev1.Namespace) {
			if n.Name == "" {
				return
			}
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[corev1.LabelMetadataName] = n.Name
		},
		PrepareCreate: func(_ context.Context, n *corev1.Namespace) {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			// A generated name is known only now.
			n.Labels[corev1.LabelMetadataName] = n.Name
			n.Status.Phase = corev1.NamespaceActive
			for _, finalizer := range n.Spec.Finalizers {
				if finalizer == corev1.FinalizerKubernetes {
					return
				}
			}
			n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
		},
		PrepareUpdate: func(_ context.Context, n, old *corev1.Namespace) { n.Spec.Finalizers = old.Spec.Finalizers },
		Validate:      validateNamespace,
		ValidateStatus: func(n, _ *corev1.Namespace) field.ErrorList {
			terminating := n.Status.Phase == corev1.NamespaceTerminating
			if terminating != (n.DeletionTimestamp != nil) {
				return field.ErrorList{field.Invalid(field.NewPath("status", "phase"), n.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty, and 'Active' if it is empty")}
			}
			return nil
		},
		Fields: map[string]func(*corev1.Namespace) string{
			"status.phase": func(n *corev1.Namespace) string { return string(n.Status.Phase) },
			"name":         func(n *corev1.Namespace) string { return n.Name },
		},
		KeepUntil: func(n *corev1.Namespace) bool { return len(n.Spec.Finalizers) > 0 },
		Columns: []resource.Column[*corev1.Namespace]{
			{Name: "Status", Description: "Active, or Terminating while its contents are deleted.", Value: func(n *corev1.Namespace) any { return string(n.Status.Phase) }},
			resource.Age[*corev1.Namespace](),
		},
		Wrap: func(s *resource.Storage) rest.Storage { return &namespaceStorage{s} },
		Extra: func(_ resource.Environment, store *genericregistry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{"finalize": &finalizeStorage{store}}, nil
		},
	}
}

func validateNamespace(n *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, finalizer := range n.Spec.Finalizers {
		for _, message := range utilvalidation.IsQualifiedName(string(finalizer)) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "finalizers").Index(i), finalizer, message))
		}
	}
	return errs
}

// namespaceStorage deletes a namespace in two steps: first it becomes Terminating, and the namespace controller deletes what is in it; when that is done
// and spec.finalizers are empty, it goes.
type namespaceStorage struct{ *resource.Storage }

// Delete implements rest.GracefulDeleter.
func (s *namespaceStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := s.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	current := obj.(*corev1.Namespace)
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	if err := checkPreconditions(current, options); err != nil {
		return nil, false, err
	}
	if current.DeletionTimestamp.IsZero() {
		if current, err = s.terminate(ctx, name, validate, options); err != nil {
			return nil, false, err
		}
		if len(current.Spec.Finalizers)+len(current.Finalizers) > 0 {
			return current, false, nil
		}
	}
	if len(current.Spec.Finalizers) > 0 {
		return current, false, nil
	}
	return s.Storage.Delete(ctx, name, validate, options)
}

func checkPreconditions(n *corev1.Namespace, options *metav1.DeleteOptions) error {
	p := options.Preconditions
	conflict := func(what, want, have string) error {
		return apierrors.NewConflict(corev1.Resource("namespaces"), n.Name, fmt.Errorf("precondition failed: %s in precondition: %v, %s in object meta: %v", what, want, what, have))
	}
	if p != nil && p.UID != nil && *p.UID != n.UID {
		return conflict("UID", string(*p.UID), string(n.UID))
	}
	if p != nil && p.ResourceVersion != nil && *p.ResourceVersion != n.ResourceVersion {
		return conflict("ResourceVersion", *p.ResourceVersion, n.ResourceVersion)
	}
	return nil
}

func (s *namespaceStorage) terminate(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (*corev1.Namespace, error) {
	key, err := s.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &corev1.Namespace{}
	var preconditions *storage.Preconditions
	if p := options.Preconditions; p != nil {
		preconditions = &storage.Preconditions{UID: p.UID, ResourceVersion: p.ResourceVersion}
	}
	update := func(existing runtime.Object) (runtime.Object, error) {
		if validate != nil {
			if err := validate(ctx, existing); err != nil {
				return nil, err
			}
		}
		n := existing.(*corev1.Namespace)
		if n.DeletionTimestamp.IsZero() {
			now := metav1.Now()
			n.DeletionTimestamp = &now
		}
		n.Status.Phase = corev1.NamespaceTerminating
		addFinalizer(n, options)
		return n, nil
	}
	err = s.Storage.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions, storage.SimpleUpdate(update), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		return nil, s.interpret(err, name)
	}
	return out, nil
}

func (s *namespaceStorage) interpret(err error, name string) error {
	if storage.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return err
}

// addFinalizer keeps the wish for foreground or orphan deletion until the garbage collector has carried it out.
func addFinalizer(n *corev1.Namespace, options *metav1.DeleteOptions) {
	if options.PropagationPolicy == nil {
		return
	}
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
	}[*options.PropagationPolicy]
	if finalizer != "" {
		n.Finalizers = append(n.Finalizers, finalizer)
	}
}

// DeleteCollection is not offered: a cluster's namespaces are not deleted at one stroke.
func (s *namespaceStorage) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions, *metav1.ListOptions) (runtime.Object, error) {
	return nil, apierrors.NewMethodNotSupported(corev1.Resource("namespaces"), "deletecollection")
}

// finalizeStorage is namespaces/finalize: the only place where spec.finalizers change.
type finalizeStorage struct{ store *genericregistry.Store }

func (s *finalizeStorage) New() runtime.Object { return &corev1.Namespace{} }

// Destroy leaves the storage to the resource itself, which shares it.
func (s *finalizeStorage) Destroy() {}

func (s *finalizeStorage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	view := *s.store
	view.UpdateStrategy = finalizeStrategy{s.store.UpdateStrategy}
	return view.Update(ctx, name, info, create, update, false, options)
}

func (s *finalizeStorage) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

type finalizeStrategy struct{ rest.RESTUpdateStrategy }

func (finalizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}
