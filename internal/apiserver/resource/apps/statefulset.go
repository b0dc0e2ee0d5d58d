package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func statefulSet() *resource.Kind[*appsv1.StatefulSet] {
	return &resource.Kind[*appsv1.StatefulSet]{
		Resource:          "statefulsets",
		ShortNames:        []string{"sts"},
		Categories:        []string{"all"},
		HasStatus:         true,
		StatusKeepsLabels: true,
		Generation:        true,
		New:               func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} },
		NewList:           func() runtime.Object { return &appsv1.StatefulSetList{} },
		Default:           defaultStatefulSet,
		// Pods are named after the set and carry its name in a label.
		ValidateName:   func(name string, _ bool) []string { return utilvalidation.IsDNS1123Label(name) },
		Validate:       validateStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
		Scale: &resource.Scale[*appsv1.StatefulSet]{
			Replicas:    func(s *appsv1.StatefulSet) int32 { return ptr.Deref(s.Spec.Replicas, 1) },
			SetReplicas: func(s *appsv1.StatefulSet, n int32) { s.Spec.Replicas = &n },
			Observed:    func(s *appsv1.StatefulSet) int32 { return s.Status.Replicas },
			Selector:    func(s *appsv1.StatefulSet) (string, error) { return selectorText(s.Spec.Selector) },
		},
		Columns: append([]resource.Column[*appsv1.StatefulSet]{
			{Name: "Ready", Description: "Pods that are ready, of those wished.", Value: func(s *appsv1.StatefulSet) any {
				return fraction(s.Status.ReadyReplicas, ptr.Deref(s.Spec.Replicas, 1))
			}},
			resource.Age[*appsv1.StatefulSet](),
		}, podspec.ContainerColumns(func(s *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &s.Spec.Template })...),
	}
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	podspec.Default(&s.Template.Spec)
	for i := range s.VolumeClaimTemplates {
		podspec.DefaultClaim(&s.VolumeClaimTemplates[i].Spec)
		// A template has no state, but has always been shown with one.
		if s.VolumeClaimTemplates[i].Status.Phase == "" {
			s.VolumeClaimTemplates[i].Status.Phase = corev1.ClaimPending
		}
	}
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		if s.UpdateStrategy.RollingUpdate.Partition == nil {
			s.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](0)
		}
		if s.UpdateStrategy.RollingUpdate.MaxUnavailable == nil {
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		}
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	for _, when := range []*appsv1.PersistentVolumeClaimRetentionPolicyType{&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, &s.PersistentVolumeClaimRetentionPolicy.WhenScaled} {
		if *when == "" {
			*when = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		}
	}
	if s.Replicas == nil {
		s.Replicas = ptr.To[int32](1)
	}
	if s.RevisionHistoryLimit == nil {
		s.RevisionHistoryLimit = ptr.To[int32](10)
	}
}

func validateStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	s := &set.Spec
	errs := rules.OneOf(s.PodManagementPolicy, spec.Child("podManagementPolicy"), appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	errs = append(errs, validateStatefulStrategy(&s.UpdateStrategy, spec.Child("updateStrategy"))...)
	retention := spec.Child("persistentVolumeClaimRetentionPolicy")
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		allowed := []appsv1.PersistentVolumeClaimRetentionPolicyType{appsv1.DeletePersistentVolumeClaimRetentionPolicyType, appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
		errs = append(errs, rules.OneOf(p.WhenDeleted, retention.Child("whenDeleted"), allowed...)...)
		errs = append(errs, rules.OneOf(p.WhenScaled, retention.Child("whenScaled"), allowed...)...)
	}
	errs = append(errs, rules.NotNegativePointer(s.Replicas, spec.Child("replicas"))...)
	errs = append(errs, rules.NotNegative(s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, rules.NotNegativePointer(s.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))...)
	if s.Ordinals != nil {
		errs = append(errs, rules.NotNegative(s.Ordinals.Start, spec.Child("ordinals", "start"))...)
	}
	if s.ServiceName != "" {
		errs = append(errs, rules.Invalid(utilvalidation.IsDNS1123Subdomain(s.ServiceName), spec.Child("serviceName"), s.ServiceName)...)
	}
	errs = append(errs, validateSelector(s.Selector, "statefulset")...)
	// What a claim template names is a volume of every pod.
	template := s.Template.DeepCopy()
	for _, claim := range s.VolumeClaimTemplates {
		template.Spec.Volumes = withClaim(template.Spec.Volumes, claim.Name)
	}
	errs = append(errs, podspec.ValidateTemplate(template, s.Selector, spec.Child("template"))...)
	return append(errs, podspec.ValidateAlways(&s.Template, spec.Child("template"))...)
}

// withClaim puts the claim in the place of a volume of its name, or adds it.
func withClaim(volumes []corev1.Volume, name string) []corev1.Volume {
	claim := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
	for i := range volumes {
		if volumes[i].Name == name {
			volumes[i] = claim
			return volumes
		}
	}
	return append(volumes, claim)
}

func validateStatefulStrategy(s *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), s.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
	case "":
		return field.ErrorList{field.Required(path, "")}
	default:
		return field.ErrorList{field.Invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'")}
	}
	rolling := path.Child("rollingUpdate")
	errs := rules.NotNegativePointer(s.RollingUpdate.Partition, rolling.Child("partition"))
	most := s.RollingUpdate.MaxUnavailable
	errs = append(errs, validateCountOrPercent(most, rolling.Child("maxUnavailable"))...)
	if most != nil && isZero(most) {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), most, "cannot be 0"))
	}
	if percent(most) > 100 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), most, "must not be greater than 100%"))
	}
	return errs
}

func validateStatefulSetUpdate(set, old *appsv1.StatefulSet) field.ErrorList {
	errs := validateStatefulSet(set)
	s := old.Spec.DeepCopy()
	s.Replicas, s.Template, s.UpdateStrategy = set.Spec.Replicas, set.Spec.Template, set.Spec.UpdateStrategy
	s.MinReadySeconds, s.Ordinals, s.RevisionHistoryLimit = set.Spec.MinReadySeconds, set.Spec.Ordinals, set.Spec.RevisionHistoryLimit
	s.PersistentVolumeClaimRetentionPolicy = set.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(*s, set.Spec) {
		errs = append(errs, field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}
