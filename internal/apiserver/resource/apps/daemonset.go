package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func daemonSet() *resource.Kind[*appsv1.DaemonSet] {
	count := func(name, description string, of func(*appsv1.DaemonSetStatus) int32) resource.Column[*appsv1.DaemonSet] {
		return resource.Column[*appsv1.DaemonSet]{Name: name, Type: "integer", Description: description, Value: func(d *appsv1.DaemonSet) any { return int64(of(&d.Status)) }}
	}
	return &resource.Kind[*appsv1.DaemonSet]{
		Resource:          "daemonsets",
		ShortNames:        []string{"ds"},
		Categories:        []string{"all"},
		HasStatus:         true,
		StatusKeepsLabels: true,
		Generation:        true,
		New:               func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} },
		NewList:           func() runtime.Object { return &appsv1.DaemonSetList{} },
		Default:           defaultDaemonSet,
		Validate:          validateDaemonSet,
		ValidateUpdate: func(d, old *appsv1.DaemonSet) field.ErrorList {
			return append(validateDaemonSet(d), rules.Unchanged(d.Spec.Selector, old.Spec.Selector, spec.Child("selector"))...)
		},
		Columns: append([]resource.Column[*appsv1.DaemonSet]{
			count("Desired", "Nodes that should run a pod.", func(s *appsv1.DaemonSetStatus) int32 { return s.DesiredNumberScheduled }),
			count("Current", "Nodes that run a pod.", func(s *appsv1.DaemonSetStatus) int32 { return s.CurrentNumberScheduled }),
			count("Ready", "Pods that are ready.", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberReady }),
			count("Up-to-date", "Pods of the newest template.", func(s *appsv1.DaemonSetStatus) int32 { return s.UpdatedNumberScheduled }),
			count("Available", "Pods that have been ready for minReadySeconds.", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberAvailable }),
			{Name: "Node Selector", Description: "Labels of the nodes that get a pod.", Value: func(d *appsv1.DaemonSet) any {
				return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: d.Spec.Template.Spec.NodeSelector})
			}},
			resource.Age[*appsv1.DaemonSet](),
		}, templateColumns(
			func(d *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &d.Spec.Template },
			func(d *appsv1.DaemonSet) *metav1.LabelSelector { return d.Spec.Selector })...),
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	s := &d.Spec
	podspec.Default(&s.Template.Spec)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		if s.UpdateStrategy.RollingUpdate.MaxUnavailable == nil {
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		}
		if s.UpdateStrategy.RollingUpdate.MaxSurge == nil {
			s.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(0))
		}
	}
	if s.RevisionHistoryLimit == nil {
		s.RevisionHistoryLimit = ptr.To[int32](10)
	}
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	s := &d.Spec
	errs := validateSelector(s.Selector, "daemonset")
	errs = append(errs, podspec.ValidateTemplate(&s.Template, s.Selector, spec.Child("template"))...)
	errs = append(errs, podspec.ValidateAlways(&s.Template, spec.Child("template"))...)
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, rules.NotNegativePointer(s.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))...)
	return append(errs, validateDaemonStrategy(&s.UpdateStrategy, spec.Child("updateStrategy"))...)
}

func validateDaemonStrategy(s *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	errs := rules.OneOf(s.Type, path.Child("type"), appsv1.OnDeleteDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return errs
	}
	path = path.Child("rollingUpdate")
	if s.RollingUpdate == nil {
		return append(errs, field.Required(path, ""))
	}
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	errs = append(errs, validateCountOrPercent(unavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, validateCountOrPercent(surge, path.Child("maxSurge"))...)
	for name, v := range map[string]*intstr.IntOrString{"maxUnavailable": unavailable, "maxSurge": surge} {
		if percent(v) > 100 {
			errs = append(errs, field.Invalid(path.Child(name), v, "must not be greater than 100%"))
		}
	}
	switch hasUnavailable, hasSurge := unavailable != nil && !isZero(unavailable), surge != nil && !isZero(surge); {
	case hasUnavailable && hasSurge:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	case !hasUnavailable && !hasSurge:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}
