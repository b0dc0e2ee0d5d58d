// Package rbac describes the kinds of the group rbac.authorization.k8s.io, one in a file, and keeps people from giving themselves what they do not have: who writes a role must
// hold what it grants, or be allowed to "escalate"; who writes a binding must hold what its role grants, or be allowed to "bind" that role.
//
//	request ─► guard: does who asks hold it? ─► storage
package rbac

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Grants tells who holds what.
type Grants interface {
	authorizer.UnconditionalAuthorizer
	// Rules are those that the user has in a namespace, as far as they are known when there is an error.
	Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error)
}

// Kinds are the kinds of the group, with their storages once they are installed.
type Kinds struct {
	// grants is there when requests come.
	grants func() Grants

	roles, clusterRoles, roleBindings, clusterRoleBindings *genericregistry.Store
}

// New returns the kinds.
func New(grants func() Grants) *Kinds { return &Kinds{grants: grants} }

// Group returns the group.
func (k *Kinds) Group() resource.Group {
	return resource.Group{
		GroupVersion: rbacv1.SchemeGroupVersion,
		AddToScheme:  rbacv1.AddToScheme,
		Kinds: []resource.Description{
			guarded(clusterRole(), &k.clusterRoles, k.checkRole), guarded(clusterRoleBinding(), &k.clusterRoleBindings, k.checkBinding),
			guarded(role(), &k.roles, k.checkRole), guarded(roleBinding(), &k.roleBindings, k.checkBinding),
		},
	}
}

// guarded puts a check before all writes of a kind, and keeps its storage.
func guarded[T resource.Object](kind *resource.Kind[T], store **genericregistry.Store, check check) *resource.Kind[T] {
	kind.Adjust = func(_ resource.Environment, s *genericregistry.Store) error {
		*store = s
		return nil
	}
	kind.Wrap = func(s *resource.Storage) rest.Storage { return &guard{Storage: s, check: check} }
	return kind
}

// Create stores an object of one of the kinds for the API server itself, past the checks and what else stands before a request: at its first start the server makes many.
func (k *Kinds) Create(ctx context.Context, obj runtime.Object) error {
	var store *genericregistry.Store
	namespace := metav1.NamespaceNone
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		store = k.clusterRoles
	case *rbacv1.ClusterRoleBinding:
		store = k.clusterRoleBindings
	case *rbacv1.Role:
		store, namespace = k.roles, o.Namespace
	case *rbacv1.RoleBinding:
		store, namespace = k.roleBindings, o.Namespace
	default:
		return fmt.Errorf("%T is not of the group %s", obj, rbacv1.GroupName)
	}
	_, err := store.Create(request.WithNamespace(ctx, namespace), obj.DeepCopyObject(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

// validateName allows all that can stand in a path: "system:node" is the name of a role.
func validateName(name string, prefix bool) []string {
	return path.ValidatePathSegmentName(name, prefix)
}

func createdAt[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{Name: "Created At", Description: "When the object was created.", Value: func(obj T) any {
		return obj.GetCreationTimestamp().UTC().Format(time.RFC3339)
	}}
}
