package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func role() *resource.Kind[*rbacv1.Role] {
	return &resource.Kind[*rbacv1.Role]{
		Resource:            "roles",
		AllowCreateOnUpdate: true,
		New:                 func() *rbacv1.Role { return &rbacv1.Role{} },
		NewList:             func() runtime.Object { return &rbacv1.RoleList{} },
		ValidateName:        validateName,
		Validate:            func(r *rbacv1.Role) field.ErrorList { return validateRules(r.Rules, true) },
		Columns:             []resource.Column[*rbacv1.Role]{createdAt[*rbacv1.Role]()},
	}
}

func clusterRole() *resource.Kind[*rbacv1.ClusterRole] {
	return &resource.Kind[*rbacv1.ClusterRole]{
		Resource:            "clusterroles",
		ClusterWide:         true,
		AllowCreateOnUpdate: true,
		New:                 func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
		NewList:             func() runtime.Object { return &rbacv1.ClusterRoleList{} },
		ValidateName:        validateName,
		Validate: func(r *rbacv1.ClusterRole) field.ErrorList {
			return append(validateRules(r.Rules, false), validateAggregation(r.AggregationRule)...)
		},
		Columns: []resource.Column[*rbacv1.ClusterRole]{createdAt[*rbacv1.ClusterRole]()},
	}
}

func validateAggregation(rule *rbacv1.AggregationRule) field.ErrorList {
	if rule == nil {
		return nil
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(rule.ClusterRoleSelectors) == 0 {
		return field.ErrorList{field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")}
	}
	var errs field.ErrorList
	for i := range rule.ClusterRoleSelectors {
		errs = append(errs, rules.Selector(&rule.ClusterRoleSelectors[i], path.Index(i))...)
	}
	return errs
}

func validateRules(list []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, validateRule(&list[i], namespaced, field.NewPath("rules").Index(i))...)
	}
	return errs
}

func validateRule(rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Verbs) == 0 {
		errs = append(errs, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
	}
	if len(rule.NonResourceURLs) > 0 {
		if namespaced {
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}
