package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateTemplate checks a pod template; selector is the selector of its owner, which must match it, or nil where there is none yet.
func ValidateTemplate(template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(template.Labels, path.Child("metadata", "labels"))
	errs = append(errs, validation.ValidateAnnotations(template.Annotations, path.Child("metadata", "annotations"))...)
	if s, err := metav1.LabelSelectorAsSelector(selector); selector != nil && err == nil && !s.Empty() && !s.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, Validate(&template.Spec, path.Child("spec"))...)
}

// ValidateAlways checks that the template's pods restart always, as the owners of long-running pods require.
func ValidateAlways(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy := template.Spec.RestartPolicy; policy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	return errs
}

// Validate checks a pod's specification.
func Validate(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, validatePodCertificates(spec.Volumes, path.Child("volumes"))...)
	errs = append(errs, validateSysctls(spec, path)...)
	names := sets.New[string]()
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i := range spec.Containers {
		errs = append(errs, validateContainer(&spec.Containers[i], names, volumes, path.Child("containers").Index(i))...)
	}
	for i := range spec.InitContainers {
		errs = append(errs, validateContainer(&spec.InitContainers[i], names, volumes, path.Child("initContainers").Index(i))...)
	}
	errs = append(errs, oneOf(spec.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)...)
	errs = append(errs, oneOf(spec.DNSPolicy, path.Child("dnsPolicy"), corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateNames(spec, path)...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateAffinity(spec.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateGates(spec.SchedulingGates, path.Child("schedulingGates"))...)
	if s := spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be greater than or equal to 0"))
	}
	if s := spec.ActiveDeadlineSeconds; s != nil && (*s < 1 || *s > 1<<31-1) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *s, utilvalidation.InclusiveRangeError(1, 1<<31-1)))
	}
	return errs
}

func validateNames(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	subdomain := func(value, name string) {
		if value != "" {
			errs = append(errs, invalid(utilvalidation.IsDNS1123Subdomain(value), path.Child(name), value)...)
		}
	}
	label := func(value, name string) {
		if value != "" {
			errs = append(errs, invalid(utilvalidation.IsDNS1123Label(value), path.Child(name), value)...)
		}
	}
	subdomain(spec.ServiceAccountName, "serviceAccountName")
	subdomain(spec.NodeName, "nodeName")
	subdomain(spec.PriorityClassName, "priorityClassName")
	subdomain(spec.SchedulerName, "schedulerName")
	label(spec.Hostname, "hostname")
	label(spec.Subdomain, "subdomain")
	return errs
}

func validateGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, gate := range gates {
		p := path.Index(i).Child("name")
		errs = append(errs, invalid(utilvalidation.IsQualifiedName(gate.Name), p, gate.Name)...)
		if seen.Has(gate.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), gate.Name))
		}
		seen.Insert(gate.Name)
	}
	return errs
}

func invalid[T any](messages []string, path *field.Path, value T) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// oneOf checks an enumeration whose empty value has been defaulted before.
func oneOf[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(allowed, value):
		return field.ErrorList{field.NotSupported(path, value, allowed)}
	}
	return nil
}

// relative checks a path that must stay below where it begins.
func relative(value string, path *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(path, value, "must not contain '..'")}
	}
	if strings.HasPrefix(value, "/") {
		return field.ErrorList{field.Invalid(path, value, "must be a relative path")}
	}
	return nil
}
