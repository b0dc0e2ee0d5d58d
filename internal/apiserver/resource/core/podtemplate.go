package core

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

func podTemplate() *resource.Kind[*corev1.PodTemplate] {
	columns := podspec.ContainerColumns(func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template })
	for i := range columns {
		columns[i].Wide = false
	}
	return &resource.Kind[*corev1.PodTemplate]{
		Resource:   "podtemplates",
		Generation: true,
		New:        func() *corev1.PodTemplate { return &corev1.PodTemplate{} },
		NewList:    func() runtime.Object { return &corev1.PodTemplateList{} },
		Default:    func(t *corev1.PodTemplate) { podspec.Default(&t.Template.Spec) },
		Validate: func(t *corev1.PodTemplate) field.ErrorList {
			return podspec.ValidateTemplate(&t.Template, nil, field.NewPath("template"))
		},
		Columns: append(columns, resource.Column[*corev1.PodTemplate]{Name: "Pod Labels", Description: "Labels of the pods.", Value: func(t *corev1.PodTemplate) any {
			return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: t.Template.Labels})
		}}),
	}
}
