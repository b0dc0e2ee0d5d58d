package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

func replicaSet() *resource.Kind[*appsv1.ReplicaSet] {
	return &resource.Kind[*appsv1.ReplicaSet]{
		Resource:          "replicasets",
		ShortNames:        []string{"rs"},
		Categories:        []string{"all"},
		HasStatus:         true,
		StatusKeepsLabels: true,
		Generation:        true,
		New:               func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
		NewList:           func() runtime.Object { return &appsv1.ReplicaSetList{} },
		Default: func(r *appsv1.ReplicaSet) {
			podspec.Default(&r.Spec.Template.Spec)
			if r.Spec.Replicas == nil {
				r.Spec.Replicas = ptr.To[int32](1)
			}
		},
		Validate: validateReplicaSet,
		ValidateUpdate: func(r, old *appsv1.ReplicaSet) field.ErrorList {
			errs := validateReplicaSet(r)
			if !equality.Semantic.DeepEqual(r.Spec.Selector, old.Spec.Selector) {
				errs = append(errs, immutable(spec.Child("selector"), r.Spec.Selector))
			}
			return errs
		},
		Fields: map[string]func(*appsv1.ReplicaSet) string{
			"status.replicas": func(r *appsv1.ReplicaSet) string { return resource.Decimal(r.Status.Replicas) },
		},
		Scale: &resource.Scale[*appsv1.ReplicaSet]{
			Replicas:    func(r *appsv1.ReplicaSet) int32 { return ptr.Deref(r.Spec.Replicas, 1) },
			SetReplicas: func(r *appsv1.ReplicaSet, n int32) { r.Spec.Replicas = &n },
			Observed:    func(r *appsv1.ReplicaSet) int32 { return r.Status.Replicas },
			Selector:    func(r *appsv1.ReplicaSet) (string, error) { return selectorText(r.Spec.Selector) },
		},
		Columns: append([]resource.Column[*appsv1.ReplicaSet]{
			{Name: "Desired", Type: "integer", Description: "Pods wished.", Value: func(r *appsv1.ReplicaSet) any { return int64(ptr.Deref(r.Spec.Replicas, 1)) }},
			{Name: "Current", Type: "integer", Description: "Pods that exist.", Value: func(r *appsv1.ReplicaSet) any { return int64(r.Status.Replicas) }},
			{Name: "Ready", Type: "integer", Description: "Pods that are ready.", Value: func(r *appsv1.ReplicaSet) any { return int64(r.Status.ReadyReplicas) }},
			resource.Age[*appsv1.ReplicaSet](),
		}, templateColumns(
			func(r *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &r.Spec.Template },
			func(r *appsv1.ReplicaSet) *metav1.LabelSelector { return r.Spec.Selector })...),
	}
}

func validateReplicaSet(r *appsv1.ReplicaSet) field.ErrorList {
	errs := notNegative(ptr.Deref(r.Spec.Replicas, 1), spec.Child("replicas"))
	errs = append(errs, notNegative(r.Spec.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, validateSelector(r.Spec.Selector, "replicaset")...)
	errs = append(errs, podspec.ValidateTemplate(&r.Spec.Template, r.Spec.Selector, spec.Child("template"))...)
	return append(errs, podspec.ValidateAlways(&r.Spec.Template, spec.Child("template"))...)
}
