package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

// validatePodUpdate allows only what can change while a pod runs: images, a shorter deadline, more tolerations, and what gates hold back.
func validatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := podspec.Validate(&p.Spec, path)
	errs = append(errs, validateSameContainers(p.Spec.Containers, old.Spec.Containers, path.Child("containers"))...)
	errs = append(errs, validateSameContainers(p.Spec.InitContainers, old.Spec.InitContainers, path.Child("initContainers"))...)
	if len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateDeadline(p, old, path)...)
	errs = append(errs, validateAddedTolerations(p, old, path)...)
	errs = append(errs, validateRemovedGates(p, old, path)...)
	if !equality.Semantic.DeepEqual(frozen(p, old), old.Spec) {
		errs = append(errs, field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"+
			"`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

func validateSameContainers(containers, old []corev1.Container, path *field.Path) field.ErrorList {
	if len(containers) != len(old) {
		return field.ErrorList{field.Forbidden(path, "pod updates may not add or remove containers")}
	}
	return nil
}

func validateDeadline(p, old *corev1.Pod, path *field.Path) field.ErrorList {
	was, is := old.Spec.ActiveDeadlineSeconds, p.Spec.ActiveDeadlineSeconds
	path = path.Child("activeDeadlineSeconds")
	switch {
	case was == nil || is != nil && *is <= *was:
		return nil
	case is == nil:
		return field.ErrorList{field.Invalid(path, is, "must not update from a positive integer to nil value")}
	}
	return field.ErrorList{field.Invalid(path, *is, "must be less than or equal to previous value")}
}

func validateAddedTolerations(p, old *corev1.Pod, path *field.Path) field.ErrorList {
	for _, was := range old.Spec.Tolerations {
		kept := false
		for _, is := range p.Spec.Tolerations {
			// The seconds of a toleration may change.
			is.TolerationSeconds = was.TolerationSeconds
			kept = kept || equality.Semantic.DeepEqual(is, was)
		}
		if !kept {
			return field.ErrorList{field.Forbidden(path.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

func validateRemovedGates(p, old *corev1.Pod, path *field.Path) field.ErrorList {
	had := map[string]bool{}
	for _, gate := range old.Spec.SchedulingGates {
		had[gate.Name] = true
	}
	var errs field.ErrorList
	for i, gate := range p.Spec.SchedulingGates {
		if !had[gate.Name] {
			errs = append(errs, field.Forbidden(path.Child("schedulingGates").Index(i), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}

// frozen is the new specification with all that may change set back to what it was; what is left must be equal to the old one.
func frozen(p, old *corev1.Pod) corev1.PodSpec {
	spec := *p.Spec.DeepCopy()
	for i := range spec.Containers {
		spec.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	spec.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	spec.Tolerations = old.Spec.Tolerations
	spec.SchedulingGates = old.Spec.SchedulingGates
	was := old.Spec.TerminationGracePeriodSeconds
	if was != nil && *was < 0 && spec.TerminationGracePeriodSeconds != nil && *spec.TerminationGracePeriodSeconds == 1 {
		spec.TerminationGracePeriodSeconds = was
	}
	if len(old.Spec.SchedulingGates) > 0 {
		// Where a gated pod may go can still be narrowed.
		narrowed := true
		for key, value := range old.Spec.NodeSelector {
			narrowed = narrowed && spec.NodeSelector[key] == value
		}
		if narrowed {
			spec.NodeSelector = old.Spec.NodeSelector
		}
	}
	return spec
}
