package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func roleBinding() *resource.Kind[*rbacv1.RoleBinding] {
	kinds := []string{"Role", "ClusterRole"}
	validate := func(b *rbacv1.RoleBinding) field.ErrorList { return validateBinding(&b.RoleRef, b.Subjects, kinds) }
	return &resource.Kind[*rbacv1.RoleBinding]{
		Resource:            "rolebindings",
		AllowCreateOnUpdate: true,
		New:                 func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
		NewList:             func() runtime.Object { return &rbacv1.RoleBindingList{} },
		ValidateName:        validateName,
		Default:             func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		Validate:            validate,
		ValidateUpdate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
			return append(validate(b), validateSameRole(b.RoleRef, old.RoleRef)...)
		},
		Columns: bindingColumns(func(b *rbacv1.RoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
	}
}

func clusterRoleBinding() *resource.Kind[*rbacv1.ClusterRoleBinding] {
	validate := func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
		return validateBinding(&b.RoleRef, b.Subjects, []string{"ClusterRole"})
	}
	return &resource.Kind[*rbacv1.ClusterRoleBinding]{
		Resource:            "clusterrolebindings",
		ClusterWide:         true,
		AllowCreateOnUpdate: true,
		New:                 func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
		NewList:             func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
		ValidateName:        validateName,
		Default:             func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		Validate:            validate,
		ValidateUpdate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
			return append(validate(b), validateSameRole(b.RoleRef, old.RoleRef)...)
		},
		Columns: bindingColumns(func(b *rbacv1.ClusterRoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
	}
}

func bindingColumns[T resource.Object](of func(T) (rbacv1.RoleRef, []rbacv1.Subject)) []resource.Column[T] {
	subjects := func(kind string) func(T) any {
		return func(obj T) any {
			var names []string
			_, subjects := of(obj)
			for _, s := range subjects {
				switch {
				case s.Kind != kind:
				case kind == rbacv1.ServiceAccountKind:
					names = append(names, s.Namespace+"/"+s.Name)
				default:
					names = append(names, s.Name)
				}
			}
			return strings.Join(names, ", ")
		}
	}
	return []resource.Column[T]{
		{Name: "Role", Description: "The role that is bound.", Value: func(obj T) any {
			role, _ := of(obj)
			return role.Kind + "/" + role.Name
		}},
		resource.Age[T](),
		{Name: "Users", Wide: true, Description: "Users who have the role.", Value: subjects(rbacv1.UserKind)},
		{Name: "Groups", Wide: true, Description: "Groups that have the role.", Value: subjects(rbacv1.GroupKind)},
		{Name: "ServiceAccounts", Wide: true, Description: "Service accounts that have the role.", Value: subjects(rbacv1.ServiceAccountKind)},
	}
}

func defaultBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if role.APIGroup == "" {
		role.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		if s := &subjects[i]; s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}

func validateBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject, kinds []string) field.ErrorList {
	path := field.NewPath("roleRef")
	errs := rules.OneOf(role.APIGroup, path.Child("apiGroup"), rbacv1.GroupName)
	errs = append(errs, rules.OneOf(role.Kind, path.Child("kind"), kinds...)...)
	if role.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, rules.Invalid(apipath.IsValidPathSegmentName(role.Name), path.Child("name"), role.Name)...)
	}
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, path *field.Path) field.ErrorList {
	errs := rules.Required(s.Name, path.Child("name"))
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			errs = append(errs, rules.Invalid(validation.ValidateServiceAccountName(s.Name, false), path.Child("name"), s.Name)...)
		}
		errs = append(errs, rules.Required(s.Namespace, path.Child("namespace"))...)
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}

func validateSameRole(role, old rbacv1.RoleRef) field.ErrorList {
	if role == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), role, "cannot change roleRef")}
}
