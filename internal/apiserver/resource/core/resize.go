package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/qos"
)

// resize is pods/resize: CPU and memory of containers that run.
func resize() resource.Sub[*corev1.Pod] {
	return resource.Sub[*corev1.Pod]{
		Prepare: func(_ context.Context, p, old *corev1.Pod) {
			restorePod(p, old, func(spec *corev1.PodSpec) {
				takeResources(spec.Containers, p.Spec.Containers, func(*corev1.Container) bool { return true })
				takeResources(spec.InitContainers, p.Spec.InitContainers, isSidecar)
			})
		},
		Validate: validateResize,
		Reset:    fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// takeResources takes what can be resized from the container of the same name.
func takeResources(into, from []corev1.Container, may func(*corev1.Container) bool) {
	byName := map[string]*corev1.Container{}
	for i := range from {
		byName[from[i].Name] = &from[i]
	}
	for i := range into {
		if c, ok := byName[into[i].Name]; ok && may(&into[i]) {
			into[i].Resources, into[i].ResizePolicy = c.Resources, c.ResizePolicy
		}
	}
}

func validateResize(p, old *corev1.Pod) field.ErrorList {
	errs := podspec.Validate(&p.Spec, specPath)
	if qos.Class(&p.Spec) != qos.Class(&old.Spec) {
		errs = append(errs, field.Invalid(specPath, qos.Class(&p.Spec), "Pod QOS Class may not change as a result of resizing"))
	}
	for i := range p.Spec.Containers {
		errs = append(errs, validateResizedContainer(&p.Spec.Containers[i], &old.Spec.Containers[i], specPath.Child("containers").Index(i))...)
	}
	for i := range p.Spec.InitContainers {
		errs = append(errs, validateResizedContainer(&p.Spec.InitContainers[i], &old.Spec.InitContainers[i], specPath.Child("initContainers").Index(i))...)
	}
	return errs
}

func validateResizedContainer(c, old *corev1.Container, path *field.Path) field.ErrorList {
	path = path.Child("resources")
	errs := validateResizedList(c.Resources.Limits, old.Resources.Limits, path.Child("limits"), "limits")
	return append(errs, validateResizedList(c.Resources.Requests, old.Resources.Requests, path.Child("requests"), "requests")...)
}

// validateResizedList lets CPU and memory change and be added, and nothing be taken away.
func validateResizedList(list, old corev1.ResourceList, path *field.Path, word string) field.ErrorList {
	var errs field.ErrorList
	for name := range old {
		if _, ok := list[name]; !ok {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("resource %s cannot be removed", word)))
		}
	}
	for name, quantity := range list {
		if was, ok := old[name]; ok && was.Cmp(quantity) == 0 {
			continue
		}
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			errs = append(errs, field.Forbidden(path.Key(string(name)), "only cpu and memory resources are mutable"))
		}
	}
	return errs
}
