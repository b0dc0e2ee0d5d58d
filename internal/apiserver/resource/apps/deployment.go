package apps

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

func deployment() *resource.Kind[*appsv1.Deployment] {
	return &resource.Kind[*appsv1.Deployment]{
		Resource:          "deployments",
		ShortNames:        []string{"deploy"},
		Categories:        []string{"all"},
		HasStatus:         true,
		StatusKeepsLabels: true,
		Generation:        true,
		New:               func() *appsv1.Deployment { return &appsv1.Deployment{} },
		NewList:           func() runtime.Object { return &appsv1.DeploymentList{} },
		Default:           defaultDeployment,
		Validate:          validateDeployment,
		ValidateUpdate: func(d, old *appsv1.Deployment) field.ErrorList {
			errs := validateDeployment(d)
			if !equality.Semantic.DeepEqual(d.Spec.Selector, old.Spec.Selector) {
				errs = append(errs, immutable(spec.Child("selector"), d.Spec.Selector))
			}
			return errs
		},
		Scale: &resource.Scale[*appsv1.Deployment]{
			Replicas:    func(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) },
			SetReplicas: func(d *appsv1.Deployment, n int32) { d.Spec.Replicas = &n },
			Observed:    func(d *appsv1.Deployment) int32 { return d.Status.Replicas },
			Selector:    func(d *appsv1.Deployment) (string, error) { return selectorText(d.Spec.Selector) },
		},
		Columns: append([]resource.Column[*appsv1.Deployment]{
			{Name: "Ready", Description: "Pods that are ready, of those wished.", Value: func(d *appsv1.Deployment) any {
				return fraction(d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 1))
			}},
			{Name: "Up-to-date", Type: "integer", Description: "Pods of the newest template.", Value: func(d *appsv1.Deployment) any { return int64(d.Status.UpdatedReplicas) }},
			{Name: "Available", Type: "integer", Description: "Pods that have been ready for minReadySeconds.", Value: func(d *appsv1.Deployment) any { return int64(d.Status.AvailableReplicas) }},
			resource.Age[*appsv1.Deployment](),
		}, templateColumns(
			func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template },
			func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector })...),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	podspec.Default(&s.Template.Spec)
	if s.Replicas == nil {
		s.Replicas = ptr.To[int32](1)
	}
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		quarter := intstr.FromString("25%")
		if s.Strategy.RollingUpdate.MaxUnavailable == nil {
			s.Strategy.RollingUpdate.MaxUnavailable = ptr.To(quarter)
		}
		if s.Strategy.RollingUpdate.MaxSurge == nil {
			s.Strategy.RollingUpdate.MaxSurge = ptr.To(quarter)
		}
	}
	if s.RevisionHistoryLimit == nil {
		s.RevisionHistoryLimit = ptr.To[int32](10)
	}
	if s.ProgressDeadlineSeconds == nil {
		s.ProgressDeadlineSeconds = ptr.To[int32](600)
	}
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	s := &d.Spec
	errs := notNegative(ptr.Deref(s.Replicas, 1), spec.Child("replicas"))
	errs = append(errs, validateSelector(s.Selector, "deployment")...)
	errs = append(errs, podspec.ValidateTemplate(&s.Template, s.Selector, spec.Child("template"))...)
	errs = append(errs, podspec.ValidateAlways(&s.Template, spec.Child("template"))...)
	errs = append(errs, validateStrategy(&s.Strategy, spec.Child("strategy"))...)
	errs = append(errs, notNegative(s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, notNegative(ptr.Deref(s.RevisionHistoryLimit, 0), spec.Child("revisionHistoryLimit"))...)
	if deadline := s.ProgressDeadlineSeconds; deadline != nil {
		errs = append(errs, notNegative(*deadline, spec.Child("progressDeadlineSeconds"))...)
		if *deadline <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(spec.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is '"+string(appsv1.RecreateDeploymentStrategyType)+"'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		return validateRollingUpdate(s.RollingUpdate, path.Child("rollingUpdate"))
	}
	return field.ErrorList{field.NotSupported(path.Child("type"), s.Type, []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
}

func validateRollingUpdate(r *appsv1.RollingUpdateDeployment, path *field.Path) field.ErrorList {
	if r == nil {
		return field.ErrorList{field.Required(path, "this should be defaulted and never be nil")}
	}
	errs := validateCountOrPercent(r.MaxUnavailable, path.Child("maxUnavailable"))
	errs = append(errs, validateCountOrPercent(r.MaxSurge, path.Child("maxSurge"))...)
	if percent(r.MaxUnavailable) > 100 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), r.MaxUnavailable, "must not be greater than 100%"))
	}
	if isZero(r.MaxUnavailable) && isZero(r.MaxSurge) {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return errs
}

func validateCountOrPercent(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if v.Type == intstr.Int {
		return notNegative(v.IntVal, path)
	}
	var errs field.ErrorList
	for _, message := range utilvalidation.IsValidPercent(v.StrVal) {
		errs = append(errs, field.Invalid(path, v, message))
	}
	return errs
}

// percent is the number of a percentage, and 0 for a count.
func percent(v *intstr.IntOrString) int {
	if v == nil || v.Type != intstr.String {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	if err != nil {
		return 0
	}
	return n
}

func isZero(v *intstr.IntOrString) bool {
	return v != nil && percent(v) == 0 && v.IntVal == 0
}
