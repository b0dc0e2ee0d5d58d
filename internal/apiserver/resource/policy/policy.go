// Package policy describes the kinds of the group policy. Evictions, which mind its budgets, are a sub-resource of pods and stand in the core group.
package policy

import (
	"strconv"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group with the kind that PodDisruptionBudget returned.
func Group(budgets *resource.Kind[*policyv1.PodDisruptionBudget]) resource.Group {
	return resource.Group{
		GroupVersion: policyv1.SchemeGroupVersion,
		AddToScheme:  policyv1.AddToScheme,
		Kinds:        []resource.Description{budgets},
	}
}

// PodDisruptionBudget returns the kind, which evictions use too.
func PodDisruptionBudget() *resource.Kind[*policyv1.PodDisruptionBudget] {
	return &resource.Kind[*policyv1.PodDisruptionBudget]{
		Resource:   "poddisruptionbudgets",
		ShortNames: []string{"pdb"},
		HasStatus:  true,
		Generation: true,
		New:        func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
		NewList:    func() runtime.Object { return &policyv1.PodDisruptionBudgetList{} },
		Validate:   validateBudget,
		ValidateStatus: func(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
			status := field.NewPath("status")
			errs := rules.Conditions(b.Status.Conditions, status.Child("conditions"))
			errs = append(errs, rules.NotNegative(b.Status.DisruptionsAllowed, status.Child("disruptionsAllowed"))...)
			errs = append(errs, rules.NotNegative(b.Status.CurrentHealthy, status.Child("currentHealthy"))...)
			errs = append(errs, rules.NotNegative(b.Status.DesiredHealthy, status.Child("desiredHealthy"))...)
			return append(errs, rules.NotNegative(b.Status.ExpectedPods, status.Child("expectedPods"))...)
		},
		Columns: []resource.Column[*policyv1.PodDisruptionBudget]{
			{Name: "Min Available", Description: "Pods that must stay available.", Value: func(b *policyv1.PodDisruptionBudget) any { return orNotAvailable(b.Spec.MinAvailable) }},
			{Name: "Max Unavailable", Description: "Pods that may be unavailable.", Value: func(b *policyv1.PodDisruptionBudget) any { return orNotAvailable(b.Spec.MaxUnavailable) }},
			{Name: "Allowed Disruptions", Type: "integer", Description: "Pods that may be evicted now.", Value: func(b *policyv1.PodDisruptionBudget) any {
				return int64(b.Status.DisruptionsAllowed)
			}},
			resource.Age[*policyv1.PodDisruptionBudget](),
		},
	}
}

func orNotAvailable(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}

func validateBudget(b *policyv1.PodDisruptionBudget) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateShare(b.Spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, validateShare(b.Spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, rules.Selector(b.Spec.Selector, path.Child("selector"))...)
	return append(errs, rules.OneOfPointer(b.Spec.UnhealthyPodEvictionPolicy, path.Child("unhealthyPodEvictionPolicy"), policyv1.AlwaysAllow, policyv1.IfHealthyBudget)...)
}

// validateShare wants a count, or a percentage of at most 100.
func validateShare(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if v.Type == intstr.Int {
		return rules.NotNegative(v.IntValue(), path)
	}
	errs := rules.Invalid(utilvalidation.IsValidPercent(v.StrVal), path, v)
	if len(errs) > 0 {
		return errs
	}
	if n, err := strconv.Atoi(v.StrVal[:len(v.StrVal)-1]); err == nil && n > 100 {
		errs = append(errs, field.Invalid(path, v, "must not be greater than 100%"))
	}
	return errs
}
