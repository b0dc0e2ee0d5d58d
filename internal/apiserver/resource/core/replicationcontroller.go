package core

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func replicationController() *resource.Kind[*corev1.ReplicationController] {
	return &resource.Kind[*corev1.ReplicationController]{
		Resource:        "replicationcontrollers",
		ShortNames:      []string{"rc"},
		Categories:      []string{"all"},
		HasStatus:       true,
		Generation:      true,
		OrphanByDefault: true,
		New:             func() *corev1.ReplicationController { return &corev1.ReplicationController{} },
		NewList:         func() runtime.Object { return &corev1.ReplicationControllerList{} },
		Default:         defaultReplicationController,
		PrepareUpdate: func(_ context.Context, r, old *corev1.ReplicationController) {
			if r.Spec.Replicas == nil {
				r.Spec.Replicas = old.Spec.Replicas
			}
		},
		Validate: validateReplicationController,
		Fields: map[string]func(*corev1.ReplicationController) string{
			"status.replicas": func(r *corev1.ReplicationController) string { return resource.Decimal(r.Status.Replicas) },
		},
		Scale: &resource.Scale[*corev1.ReplicationController]{
			Replicas:    func(r *corev1.ReplicationController) int32 { return ptr.Deref(r.Spec.Replicas, 1) },
			SetReplicas: func(r *corev1.ReplicationController, n int32) { r.Spec.Replicas = &n },
			Observed:    func(r *corev1.ReplicationController) int32 { return r.Status.Replicas },
			Selector: func(r *corev1.ReplicationController) (string, error) {
				return labels.SelectorFromSet(r.Spec.Selector).String(), nil
			},
		},
		Columns: append(append([]resource.Column[*corev1.ReplicationController]{
			{Name: "Desired", Type: "integer", Description: "Pods wished.", Value: func(r *corev1.ReplicationController) any { return int64(ptr.Deref(r.Spec.Replicas, 1)) }},
			{Name: "Current", Type: "integer", Description: "Pods that exist.", Value: func(r *corev1.ReplicationController) any { return int64(r.Status.Replicas) }},
			{Name: "Ready", Type: "integer", Description: "Pods that are ready.", Value: func(r *corev1.ReplicationController) any { return int64(r.Status.ReadyReplicas) }},
			resource.Age[*corev1.ReplicationController](),
		}, podspec.ContainerColumns(func(r *corev1.ReplicationController) *corev1.PodTemplateSpec { return r.Spec.Template })...),
			resource.Column[*corev1.ReplicationController]{Name: "Selector", Wide: true, Description: "Labels of the pods.", Value: func(r *corev1.ReplicationController) any {
				return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: r.Spec.Selector})
			}}),
	}
}

// defaultReplicationController takes the template's labels for the selector and for the controller's own labels, where there are none.
func defaultReplicationController(r *corev1.ReplicationController) {
	if r.Spec.Replicas == nil {
		r.Spec.Replicas = ptr.To[int32](1)
	}
	if r.Spec.Template == nil {
		return
	}
	podspec.Default(&r.Spec.Template.Spec)
	if len(r.Spec.Selector) == 0 {
		r.Spec.Selector = maps.Clone(r.Spec.Template.Labels)
	}
	if len(r.Labels) == 0 {
		r.Labels = maps.Clone(r.Spec.Template.Labels)
	}
}

func validateReplicationController(r *corev1.ReplicationController) field.ErrorList {
	s := &r.Spec
	errs := rules.NotNegative(s.MinReadySeconds, specPath.Child("minReadySeconds"))
	errs = append(errs, metavalidation.ValidateLabels(s.Selector, specPath.Child("selector"))...)
	if len(s.Selector) == 0 {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	errs = append(errs, rules.NotNegativePointer(s.Replicas, specPath.Child("replicas"))...)
	if s.Template == nil {
		return append(errs, field.Required(specPath.Child("template"), ""))
	}
	errs = append(errs, podspec.ValidateTemplate(s.Template, &metav1.LabelSelector{MatchLabels: s.Selector}, specPath.Child("template"))...)
	return append(errs, podspec.ValidateAlways(s.Template, specPath.Child("template"))...)
}
