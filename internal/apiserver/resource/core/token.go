package core

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/tokens"
)

// Life of a token in seconds, when none is asked for, and at least and at most.
const (
	defaultTokenSeconds  = 3600
	shortestTokenSeconds = 600
	longestTokenSeconds  = 1 << 32
)

// tokenStorage is serviceaccounts/token: it issues tokens of an account.
type tokenStorage struct {
	tokens  *tokens.Tokens
	objects *objects
}

var tokenKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

func (s *tokenStorage) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy leaves the storage to the resources themselves, which share it.
func (s *tokenStorage) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: the sub-resource is of another group than its resource.
func (s *tokenStorage) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return tokenKind
}

// Create implements rest.NamedCreater.
func (s *tokenStorage) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("serviceaccounts/token takes a TokenRequest, not a %T", obj))
	}
	account, err := s.objects.ServiceAccount(ctx, request.NamespaceValue(ctx), name)
	if err != nil {
		return nil, err
	}
	if err := s.complete(asked, account); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopy()); err != nil {
			return nil, err
		}
	}
	bound, err := s.bind(ctx, asked, account)
	if err != nil {
		return nil, err
	}
	token, expires, err := s.tokens.Issue(account, bound, asked.Spec.Audiences, time.Duration(*asked.Spec.ExpirationSeconds)*time.Second)
	if err != nil {
		return nil, fmt.Errorf("failed to generate token: %w", err)
	}
	asked.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return asked, nil
}

// complete fills in what was left out, and checks the rest.
func (s *tokenStorage) complete(asked *authenticationv1.TokenRequest, account *corev1.ServiceAccount) error {
	if asked.Name != "" && asked.Name != account.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the TokenRequest (%s) is not that of the service account (%s)", asked.Name, account.Name))
	}
	asked.Name, asked.Namespace = account.Name, account.Namespace
	if asked.CreationTimestamp.IsZero() {
		asked.CreationTimestamp = metav1.Now()
	}
	if len(asked.Spec.Audiences) == 0 {
		asked.Spec.Audiences = s.tokens.Audiences()
	}
	if asked.Spec.ExpirationSeconds == nil {
		asked.Spec.ExpirationSeconds = ptr.To[int64](defaultTokenSeconds)
	}
	path := field.NewPath("spec", "expirationSeconds")
	var errs field.ErrorList
	switch seconds := *asked.Spec.ExpirationSeconds; {
	case seconds < shortestTokenSeconds:
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
	case seconds > longestTokenSeconds:
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(tokenKind.GroupKind(), account.Name, errs)
	}
	return nil
}

// bind looks up what the token is to end with.
func (s *tokenStorage) bind(ctx context.Context, asked *authenticationv1.TokenRequest, account *corev1.ServiceAccount) (tokens.Binding, error) {
	ref := asked.Spec.BoundObjectRef
	var bound tokens.Binding
	if ref == nil {
		return bound, nil
	}
	var have metav1.Object
	var resourceName string
	var err error
	switch (schema.GroupVersionKind{Version: ref.APIVersion, Kind: ref.Kind}) {
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		bound, err = s.bindPod(ctx, ref.Name, account)
		have, resourceName = bound.Pod, "pods"
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		bound.Secret, err = s.objects.Secret(ctx, account.Namespace, ref.Name)
		have, resourceName = bound.Secret, "secrets"
	case corev1.SchemeGroupVersion.WithKind("Node"):
		bound.Node, err = s.objects.Node(ctx, ref.Name)
		have, resourceName = bound.Node, "nodes"
	default:
		return bound, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s/%s", ref.APIVersion, ref.Kind))
	}
	if err != nil {
		return bound, err
	}
	if ref.UID != "" && have.GetUID() != ref.UID {
		return bound, uidConflict(resourceName, ref.Name, ref.UID, have.GetUID())
	}
	return bound, nil
}

func uidConflict(resourceName, name string, asked, have types.UID) error {
	return apierrors.NewConflict(corev1.Resource(resourceName), name, fmt.Errorf(
		"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated (%s)", asked, have))
}

// bindPod also names the node that the pod runs on, so that a token that turns up elsewhere can be told.
func (s *tokenStorage) bindPod(ctx context.Context, name string, account *corev1.ServiceAccount) (tokens.Binding, error) {
	pod, err := s.objects.Pod(ctx, account.Namespace, name)
	if err != nil {
		return tokens.Binding{}, err
	}
	if pod.Spec.ServiceAccountName != account.Name {
		return tokens.Binding{}, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account.Name))
	}
	bound := tokens.Binding{Pod: pod}
	if pod.Spec.NodeName != "" {
		bound.Node, err = s.objects.Node(ctx, pod.Spec.NodeName)
		if apierrors.IsNotFound(err) {
			// A pod can be bound to a node before the node registers; its name is told all the same.
			bound.Node, err = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}, nil
		}
	}
	return bound, err
}

// objects reads from the registries what tokens speak of.
type objects struct{ accounts, pods, secrets, nodes *genericregistry.Store }

func (o *objects) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return read[*corev1.ServiceAccount](ctx, o.accounts, namespace, name)
}

func (o *objects) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return read[*corev1.Pod](ctx, o.pods, namespace, name)
}

func (o *objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return read[*corev1.Secret](ctx, o.secrets, namespace, name)
}

func (o *objects) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return read[*corev1.Node](ctx, o.nodes, "", name)
}

// read asks the watch cache, and the store itself for what the cache does not know yet.
func read[T resource.Object](ctx context.Context, store *genericregistry.Store, namespace, name string) (T, error) {
	ctx = request.WithNamespace(ctx, namespace)
	obj, err := store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		obj, err = store.Get(ctx, name, &metav1.GetOptions{})
	}
	if err != nil {
		return *new(T), err
	}
	return obj.(T), nil
}
