package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func resourceQuota() *resource.Kind[*corev1.ResourceQuota] {
	return &resource.Kind[*corev1.ResourceQuota]{
		Resource:            "resourcequotas",
		ShortNames:          []string{"quota"},
		AllowCreateOnUpdate: true,
		HasStatus:           true,
		New:                 func() *corev1.ResourceQuota { return &corev1.ResourceQuota{} },
		NewList:             func() runtime.Object { return &corev1.ResourceQuotaList{} },
		Validate:            validateQuota,
		ValidateUpdate: func(q, old *corev1.ResourceQuota) field.ErrorList {
			errs := validateQuota(q)
			if !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
				errs = append(errs, field.Invalid(specPath.Child("scopes"), q.Spec.Scopes, "field is immutable"))
			}
			return errs
		},
		ValidateStatus: func(q, _ *corev1.ResourceQuota) field.ErrorList {
			path := field.NewPath("status")
			return append(validateQuotaList(q.Status.Hard, path.Child("hard")), validateQuotaList(q.Status.Used, path.Child("used"))...)
		},
		Columns: []resource.Column[*corev1.ResourceQuota]{
			{Name: "Request", Description: "What is used of what is allowed.", Value: func(q *corev1.ResourceQuota) any { return quotaText(q, false) }},
			{Name: "Limit", Description: "What is used of the limits.", Value: func(q *corev1.ResourceQuota) any { return quotaText(q, true) }},
			resource.Age[*corev1.ResourceQuota](),
		},
	}
}

// quotaText lists "name: used/hard", of the limits or of all else.
func quotaText(q *corev1.ResourceQuota, limits bool) string {
	var names []string
	for name := range q.Status.Hard {
		if strings.HasPrefix(string(name), "limits.") == limits {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	for i, name := range names {
		used, hard := q.Status.Used[corev1.ResourceName(name)], q.Status.Hard[corev1.ResourceName(name)]
		names[i] = fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
	}
	return strings.Join(names, ", ")
}

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	errs := validateQuotaList(q.Spec.Hard, specPath.Child("hard"))
	scopes := sets.New[corev1.ResourceQuotaScope]()
	for _, scope := range q.Spec.Scopes {
		if !slices.Contains(quotaScopes, scope) {
			errs = append(errs, field.Invalid(specPath.Child("scopes"), q.Spec.Scopes, "unsupported scope"))
		}
		scopes.Insert(scope)
	}
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort}, {corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if scopes.HasAll(pair[:]...) {
			errs = append(errs, field.Invalid(specPath.Child("scopes"), q.Spec.Scopes, "conflicting scopes"))
		}
	}
	if q.Spec.ScopeSelector == nil {
		return errs
	}
	for i, r := range q.Spec.ScopeSelector.MatchExpressions {
		errs = append(errs, validateScope(r, specPath.Child("scopeSelector", "matchExpressions").Index(i))...)
	}
	return errs
}

var quotaScopes = []corev1.ResourceQuotaScope{
	corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeNotBestEffort,
	corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeVolumeAttributesClass,
}

func validateScope(r corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(quotaScopes, r.ScopeName) {
		errs = append(errs, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
	}
	byValue := r.ScopeName == corev1.ResourceQuotaScopePriorityClass || r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass
	if !byValue && r.Operator != corev1.ScopeSelectorOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) != 0 {
			errs = append(errs, field.Invalid(path.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return errs
}

func validateQuotaList(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range list {
		p := path.Key(string(name))
		errs = append(errs, rules.Qualified(string(name), p)...)
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(p, quantity.String(), "must be greater than or equal to 0"))
		}
	}
	return errs
}
