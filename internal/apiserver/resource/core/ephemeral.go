package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

// ephemeralContainers is pods/ephemeralcontainers: containers for debugging are added to a pod that runs, and never taken away.
func ephemeralContainers() resource.Sub[*corev1.Pod] {
	return resource.Sub[*corev1.Pod]{
		Prepare: func(_ context.Context, p, old *corev1.Pod) {
			restorePod(p, old, func(spec *corev1.PodSpec) { spec.EphemeralContainers = p.Spec.EphemeralContainers })
		},
		Validate: validateEphemeral,
		Reset:    fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// restorePod puts back all of the old pod but what change takes over, and what names the writer and the version.
func restorePod(p, old *corev1.Pod, change func(*corev1.PodSpec)) {
	restored := old.DeepCopy()
	restored.ResourceVersion, restored.ManagedFields, restored.UID = p.ResourceVersion, p.ManagedFields, p.UID
	change(&restored.Spec)
	*p = *restored
}

func validateEphemeral(p, old *corev1.Pod) field.ErrorList {
	path := specPath.Child("ephemeralContainers")
	errs := podspec.ValidateEphemeral(&p.Spec, specPath)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range p.Spec.EphemeralContainers {
		now[p.Spec.EphemeralContainers[i].Name] = &p.Spec.EphemeralContainers[i]
	}
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		switch is, ok := now[was.Name]; {
		case !ok:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name)))
		case !equality.Semantic.DeepEqual(is, was):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n", was.Name)))
		}
	}
	return errs
}
