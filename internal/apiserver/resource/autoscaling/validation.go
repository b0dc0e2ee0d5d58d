package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Bounds of how long and how often scaling is looked at, in seconds.
const (
	maxWindowSeconds = 3600
	maxPeriodSeconds = 1800
)

func validateAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if min := h.Spec.MinReplicas; min != nil && *min < 1 {
		errs = append(errs, field.Invalid(spec.Child("minReplicas"), *min, "must be greater than or equal to 1"))
	}
	errs = append(errs, rules.Positive(h.Spec.MaxReplicas, spec.Child("maxReplicas"))...)
	if min := h.Spec.MinReplicas; min != nil && h.Spec.MaxReplicas < *min {
		errs = append(errs, field.Invalid(spec.Child("maxReplicas"), h.Spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateReference(&h.Spec.ScaleTargetRef, spec.Child("scaleTargetRef"))...)
	for i := range h.Spec.Metrics {
		errs = append(errs, validateMetric(&h.Spec.Metrics[i], spec.Child("metrics").Index(i))...)
	}
	if b := h.Spec.Behavior; b != nil {
		errs = append(errs, validateRules(b.ScaleUp, spec.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateRules(b.ScaleDown, spec.Child("behavior", "scaleDown"))...)
	}
	return errs
}

func validateReference(r *autoscalingv2.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{"kind": r.Kind, "name": r.Name} {
		if value == "" {
			errs = append(errs, field.Required(path.Child(name), ""))
			continue
		}
		errs = append(errs, rules.Invalid(apipath.IsValidPathSegmentName(value), path.Child(name), value)...)
	}
	return errs
}

func validateMetric(m *autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	errs := rules.OneOf(m.Type, path.Child("type"), autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType)
	given := map[autoscalingv2.MetricSourceType]bool{
		autoscalingv2.ObjectMetricSourceType: m.Object != nil, autoscalingv2.PodsMetricSourceType: m.Pods != nil, autoscalingv2.ResourceMetricSourceType: m.Resource != nil,
		autoscalingv2.ContainerResourceMetricSourceType: m.ContainerResource != nil, autoscalingv2.ExternalMetricSourceType: m.External != nil,
	}
	names := map[autoscalingv2.MetricSourceType]string{
		autoscalingv2.ObjectMetricSourceType: "object", autoscalingv2.PodsMetricSourceType: "pods", autoscalingv2.ResourceMetricSourceType: "resource",
		autoscalingv2.ContainerResourceMetricSourceType: "containerResource", autoscalingv2.ExternalMetricSourceType: "external",
	}
	for kind, there := range given {
		switch {
		case kind == m.Type && !there:
			errs = append(errs, field.Required(path.Child(names[kind]), "must populate information for the given metric source"))
		case kind != m.Type && there:
			errs = append(errs, field.Forbidden(path.Child(names[kind]), "must populate the given metric source only"))
		}
	}
	switch {
	case m.Resource != nil:
		errs = append(errs, rules.Required(m.Resource.Name, path.Child("resource", "name"))...)
		errs = append(errs, validateTarget(&m.Resource.Target, path.Child("resource", "target"))...)
	case m.ContainerResource != nil:
		errs = append(errs, rules.Required(m.ContainerResource.Name, path.Child("containerResource", "name"))...)
		errs = append(errs, rules.Required(m.ContainerResource.Container, path.Child("containerResource", "container"))...)
		errs = append(errs, validateTarget(&m.ContainerResource.Target, path.Child("containerResource", "target"))...)
	case m.Pods != nil:
		errs = append(errs, rules.Required(m.Pods.Metric.Name, path.Child("pods", "metric", "name"))...)
		errs = append(errs, validateTarget(&m.Pods.Target, path.Child("pods", "target"))...)
	case m.Object != nil:
		errs = append(errs, validateReference(&m.Object.DescribedObject, path.Child("object", "describedObject"))...)
		errs = append(errs, rules.Required(m.Object.Metric.Name, path.Child("object", "metric", "name"))...)
		errs = append(errs, validateTarget(&m.Object.Target, path.Child("object", "target"))...)
	case m.External != nil:
		errs = append(errs, rules.Required(m.External.Metric.Name, path.Child("external", "metric", "name"))...)
		errs = append(errs, validateTarget(&m.External.Target, path.Child("external", "target"))...)
	}
	return errs
}

func validateTarget(t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	errs := rules.OneOf(t.Type, path.Child("type"), autoscalingv2.AverageValueMetricType, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType)
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(path.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	if t.Value == nil && t.AverageValue == nil && t.AverageUtilization == nil {
		errs = append(errs, field.Required(path, "must set either a target raw value or a target utilization"))
	}
	return errs
}

func validateRules(r *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		errs = append(errs, rules.NotNegative(*w, path.Child("stabilizationWindowSeconds"))...)
		if *w > maxWindowSeconds {
			errs = append(errs, field.Invalid(path.Child("stabilizationWindowSeconds"), *w, "must be less than or equal to 3600"))
		}
	}
	errs = append(errs, rules.OneOfPointer(r.SelectPolicy, path.Child("selectPolicy"),
		autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		errs = append(errs, rules.OneOf(p.Type, at.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)...)
		errs = append(errs, rules.Positive(p.Value, at.Child("value"))...)
		errs = append(errs, rules.Positive(p.PeriodSeconds, at.Child("periodSeconds"))...)
		if p.PeriodSeconds > maxPeriodSeconds {
			errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be less than or equal to 1800"))
		}
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0"))
	}
	return errs
}
