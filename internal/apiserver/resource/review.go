package resource

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Review describes a kind that is a question: it is answered when it is created, and never stored.
type Review[T Object] struct {
	Resource    string
	ClusterWide bool
	New         func() T
	Validate    func(T) field.ErrorList
	// Answer writes the answer into the review.
	Answer func(ctx context.Context, review T) error
}

// Name implements Description.
func (r *Review[T]) Name() string { return r.Resource }

// Register implements Description: a question has neither defaults nor fields to select by.
func (r *Review[T]) Register(*runtime.Scheme, schema.GroupVersion) error { return nil }

// Install implements Description.
func (r *Review[T]) Install(env Environment) (map[string]rest.Storage, error) {
	gvks, _, err := env.Scheme.ObjectKinds(r.New())
	if err != nil {
		return nil, err
	}
	return map[string]rest.Storage{r.Resource: &reviewStorage[T]{review: r, kind: env.Version.WithKind(gvks[0].Kind)}}, nil
}

type reviewStorage[T Object] struct {
	review *Review[T]
	kind   schema.GroupVersionKind
}

func (s *reviewStorage[T]) New() runtime.Object { return s.review.New() }

// Destroy has nothing to do: nothing is stored.
func (s *reviewStorage[T]) Destroy() {}

func (s *reviewStorage[T]) NamespaceScoped() bool { return !s.review.ClusterWide }

func (s *reviewStorage[T]) GetSingularName() string { return strings.ToLower(s.kind.Kind) }

// Create implements rest.Creater.
func (s *reviewStorage[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s takes a %s, not a %T", s.review.Resource, s.kind.Kind, obj))
	}
	if !s.review.ClusterWide {
		review.SetNamespace(request.NamespaceValue(ctx))
	}
	if s.review.Validate != nil {
		if errs := s.review.Validate(review); len(errs) > 0 {
			return nil, apierrors.NewInvalid(s.kind.GroupKind(), "", errs)
		}
	}
	if validate != nil {
		if err := validate(ctx, review.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return review, s.review.Answer(ctx, review)
}
