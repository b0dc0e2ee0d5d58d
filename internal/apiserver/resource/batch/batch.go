// Package batch describes the kinds of the group batch, one in a file.
package batch

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: batchv1.SchemeGroupVersion,
		AddToScheme:  batchv1.AddToScheme,
		Kinds:        []resource.Description{cronJob(), job()},
	}
}

var spec = field.NewPath("spec")

// templateColumns are the wide columns that both kinds end with.
func templateColumns[T resource.Object](of func(T) *batchv1.JobSpec) []resource.Column[T] {
	return append(podspec.ContainerColumns(func(obj T) *corev1.PodTemplateSpec { return &of(obj).Template }), resource.Column[T]{
		Name: "Selector", Wide: true, Description: "Labels of the pods.", Value: func(obj T) any { return metav1.FormatLabelSelector(of(obj).Selector) },
	})
}
