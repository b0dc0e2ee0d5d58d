// Package rbac describes the kinds of the group rbac.authorization.k8s.io, one in a file. Whether somebody may grant what a role grants is the business of
// admission, not of the kinds.
package rbac

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: rbacv1.SchemeGroupVersion,
		AddToScheme:  rbacv1.AddToScheme,
		Kinds:        []resource.Description{clusterRole(), clusterRoleBinding(), role(), roleBinding()},
	}
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
