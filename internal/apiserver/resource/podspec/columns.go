package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// ContainerColumns are the wide columns that every kind with a pod template has.
func ContainerColumns[T resource.Object](template func(T) *corev1.PodTemplateSpec) []resource.Column[T] {
	join := func(f func(corev1.Container) string) func(T) any {
		return func(obj T) any {
			t := template(obj)
			if t == nil {
				return ""
			}
			var parts []string
			for _, c := range t.Spec.Containers {
				parts = append(parts, f(c))
			}
			return strings.Join(parts, ",")
		}
	}
	return []resource.Column[T]{
		{Name: "Containers", Wide: true, Description: "Names of the containers.", Value: join(func(c corev1.Container) string { return c.Name })},
		{Name: "Images", Wide: true, Description: "Images of the containers.", Value: join(func(c corev1.Container) string { return c.Image })},
	}
}
