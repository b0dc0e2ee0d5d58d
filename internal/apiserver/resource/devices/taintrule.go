package devices

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

type taintRule = resourcev1.DeviceTaintRule

func deviceTaintRule() *resource.Kind[*taintRule] {
	return &resource.Kind[*taintRule]{
		Resource:            "devicetaintrules",
		ClusterWide:         true,
		HasStatus:           true,
		Generation:          true,
		AllowCreateOnUpdate: true,
		New:                 func() *taintRule { return &taintRule{} },
		NewList:             func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} },
		PrepareCreate:       func(_ context.Context, r *taintRule) { stampTaint(&r.Spec.Taint, nil) },
		PrepareUpdate:       func(_ context.Context, r, old *taintRule) { stampTaint(&r.Spec.Taint, &old.Spec.Taint) },
		Validate:            validateTaintRule,
		ValidateStatus: func(r, _ *taintRule) field.ErrorList {
			path := field.NewPath("status", "conditions")
			return append(rules.Conditions(r.Status.Conditions, path), rules.AtMost(r.Status.Conditions, resourcev1.DeviceTaintRuleStatusMaxConditions, path)...)
		},
		Columns: []resource.Column[*taintRule]{resource.Age[*taintRule]()},
	}
}

// stampTaint notes when the taint came, or when its effect changed.
func stampTaint(t, old *resourcev1.DeviceTaint) {
	changed := old != nil && old.Effect != t.Effect && t.TimeAdded.Equal(old.TimeAdded)
	if t.TimeAdded == nil || changed {
		now := metav1.Now()
		t.TimeAdded = &now
	}
}

func validateTaintRule(r *taintRule) field.ErrorList {
	errs := validateTaint(r.Spec.Taint, spec.Child("taint"))
	s := r.Spec.DeviceSelector
	if s == nil {
		return errs
	}
	path := spec.Child("deviceSelector")
	if s.Driver != nil {
		errs = append(errs, rules.Subdomain(*s.Driver, path.Child("driver"))...)
	}
	if s.Pool != nil {
		errs = append(errs, validatePool(*s.Pool, path.Child("pool"))...)
	}
	if s.Device != nil {
		errs = append(errs, rules.Label(*s.Device, path.Child("device"))...)
	}
	return errs
}

func validateTaint(t resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	errs := rules.Qualified(t.Key, path.Child("key"))
	errs = append(errs, rules.Invalid(utilvalidation.IsValidLabelValue(t.Value), path.Child("value"), t.Value)...)
	return append(errs, rules.OneOf(t.Effect, path.Child("effect"), resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone)...)
}
