// Package apps describes the kinds of the group apps, one in a file.
package apps

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: appsv1.SchemeGroupVersion,
		AddToScheme:  appsv1.AddToScheme,
		Kinds:        []resource.Description{controllerRevision(), daemonSet(), deployment(), replicaSet(), statefulSet()},
	}
}

var spec = field.NewPath("spec")

// validateSelector checks the selector of a workload: it must be there, and not select everything.
func validateSelector(selector *metav1.LabelSelector, kind string) field.ErrorList {
	path := spec.Child("selector")
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, selector, "empty selector is invalid for "+kind))
	}
	return errs
}

func notNegative(value int32, path *field.Path) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(path, value, "must be greater than or equal to 0")}
	}
	return nil
}

func selectorText(selector *metav1.LabelSelector) (string, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", err
	}
	return s.String(), nil
}

// templateColumns are the wide columns that every workload ends with.
func templateColumns[T resource.Object](template func(T) *corev1.PodTemplateSpec, selector func(T) *metav1.LabelSelector) []resource.Column[T] {
	return append(podspec.ContainerColumns(template), resource.Column[T]{
		Name: "Selector", Wide: true, Description: "Labels of the pods.", Value: func(obj T) any { return metav1.FormatLabelSelector(selector(obj)) },
	})
}

func immutable(path *field.Path, value any) *field.Error {
	return field.Invalid(path, value, "field is immutable")
}

func fraction(part, whole int32) string { return fmt.Sprintf("%d/%d", part, whole) }
