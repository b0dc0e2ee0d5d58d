package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateEphemeral checks a pod's ephemeral containers, which may have no more than debugging needs.
func ValidateEphemeral(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	names, targets := sets.New[string](), sets.New[string]()
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			names.Insert(list[i].Name)
			targets.Insert(list[i].Name)
		}
	}
	volumes, _ := validateVolumes(spec.Volumes, path.Child("volumes"))
	var errs field.ErrorList
	for i := range spec.EphemeralContainers {
		e, p := &spec.EphemeralContainers[i], path.Child("ephemeralContainers").Index(i)
		c := corev1.Container(e.EphemeralContainerCommon)
		errs = append(errs, validateContainer(&c, names, volumes, p)...)
		if e.TargetContainerName != "" && !targets.Has(e.TargetContainerName) {
			errs = append(errs, field.NotFound(p.Child("targetContainerName"), e.TargetContainerName))
		}
		for name, set := range map[string]bool{
			"ports": len(c.Ports) > 0, "livenessProbe": c.LivenessProbe != nil, "readinessProbe": c.ReadinessProbe != nil, "startupProbe": c.StartupProbe != nil,
			"lifecycle": c.Lifecycle != nil, "resources": len(c.Resources.Limits)+len(c.Resources.Requests) > 0, "resizePolicy": len(c.ResizePolicy) > 0,
		} {
			if set {
				errs = append(errs, field.Forbidden(p.Child(name), "cannot be set for an Ephemeral Container"))
			}
		}
	}
	return errs
}
