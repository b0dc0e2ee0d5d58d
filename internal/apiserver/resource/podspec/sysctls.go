package podspec

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
)

// A sysctl's name is of segments that dots or slashes divide.
const (
	sysctlMaxLength = 253
	sysctlSegment   = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)

var sysctlName = regexp.MustCompile(`^(` + sysctlSegment + `[\./])*` + sysctlSegment + `$`)

// validateSysctls also refuses those that would change the host, whose namespace the pod shares.
func validateSysctls(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec.SecurityContext == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("securityContext", "sysctls")
	seen := sets.New[string]()
	for i, s := range spec.SecurityContext.Sysctls {
		p := path.Index(i).Child("name")
		namespace, _, _ := sysctl.GetNamespace(s.Name)
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(p, ""))
		case len(s.Name) > sysctlMaxLength || !sysctlName.MatchString(s.Name):
			errs = append(errs, field.Invalid(p, s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", sysctlMaxLength, sysctlName)))
		case seen.Has(s.Name):
			errs = append(errs, field.Duplicate(p, s.Name))
		case spec.HostNetwork && namespace == sysctl.NetNamespace:
			errs = append(errs, field.Invalid(p, s.Name, "may not be specified when 'hostNetwork' is true"))
		case spec.HostIPC && namespace == sysctl.IPCNamespace:
			errs = append(errs, field.Invalid(p, s.Name, "may not be specified when 'hostIPC' is true"))
		}
		seen.Insert(s.Name)
	}
	return errs
}
