package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateContainer(c *corev1.Container, names, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case names.Has(c.Name):
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	default:
		errs = append(errs, invalid(utilvalidation.IsDNS1123Label(c.Name), path.Child("name"), c.Name)...)
	}
	names.Insert(c.Name)
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(c.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, ValidateResources(&c.Resources, path.Child("resources"))...)
	errs = append(errs, validateMounts(c.VolumeMounts, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, validateProbe(c.LivenessProbe, path.Child("livenessProbe"), true)...)
	errs = append(errs, validateProbe(c.StartupProbe, path.Child("startupProbe"), true)...)
	return append(errs, validateProbe(c.ReadinessProbe, path.Child("readinessProbe"), false)...)
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, hosts := sets.New[string](), sets.New[string]()
	for i, port := range ports {
		p := path.Index(i)
		if port.Name != "" {
			errs = append(errs, invalid(utilvalidation.IsValidPortName(port.Name), p.Child("name"), port.Name)...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(p.Child("containerPort"), ""))
		} else {
			errs = append(errs, invalid(utilvalidation.IsValidPortNum(int(port.ContainerPort)), p.Child("containerPort"), port.ContainerPort)...)
		}
		if port.HostPort != 0 {
			errs = append(errs, invalid(utilvalidation.IsValidPortNum(int(port.HostPort)), p.Child("hostPort"), port.HostPort)...)
			key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if hosts.Has(key) {
				errs = append(errs, field.Duplicate(p.Child("hostPort"), key))
			}
			hosts.Insert(key)
		}
		errs = append(errs, oneOf(port.Protocol, p.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
	}
	return errs
}

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		p := path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			errs = append(errs, invalid(utilvalidation.IsRelaxedEnvVarName(e.Name), p.Child("name"), e.Name)...)
		}
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			errs = append(errs, field.Invalid(p.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		}
		if n := sources(e.ValueFrom); n != 1 {
			errs = append(errs, field.Invalid(p.Child("valueFrom"), "", fmt.Sprintf("must specify exactly one of `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`, has %d", n)))
		}
	}
	return errs
}

func sources(s *corev1.EnvVarSource) int {
	n := 0
	for _, there := range []bool{s.FieldRef != nil, s.ResourceFieldRef != nil, s.ConfigMapKeyRef != nil, s.SecretKeyRef != nil, s.FileKeyRef != nil} {
		if there {
			n++
		}
	}
	return n
}

// ValidateResources checks requests and limits, and that no request is above its limit.
func ValidateResources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, limit := range r.Limits {
		p := path.Child("limits").Key(string(name))
		errs = append(errs, validateQuantity(name, limit, p)...)
		request, ok := r.Requests[name]
		switch {
		case !ok:
		case overcommits(name) && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case !overcommits(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		}
	}
	for name, request := range r.Requests {
		errs = append(errs, validateQuantity(name, request, path.Child("requests").Key(string(name)))...)
		if _, ok := r.Limits[name]; !ok && !overcommits(name) {
			errs = append(errs, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		}
	}
	return errs
}

// overcommits: CPU, memory and storage can be promised several times; devices and huge pages cannot.
func overcommits(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func validateQuantity(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	errs := invalid(utilvalidation.IsQualifiedName(string(name)), path, string(name))
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be greater than or equal to 0"))
	}
	if !overcommits(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be an integer"))
	}
	return errs
}

func validateProbe(p *corev1.Probe, path *field.Path, once bool) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	for name, value := range map[string]int32{
		"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold,
	} {
		if value < 0 {
			errs = append(errs, field.Invalid(path.Child(name), value, "must be greater than or equal to 0"))
		}
	}
	if once && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	handlers := 0
	for _, there := range []bool{p.Exec != nil, p.HTTPGet != nil, p.TCPSocket != nil, p.GRPC != nil} {
		if there {
			handlers++
		}
	}
	switch {
	case handlers == 0:
		errs = append(errs, field.Required(path, "must specify a handler type"))
	case handlers > 1:
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 handler type"))
	case p.HTTPGet != nil:
		errs = append(errs, validatePortNumberOrName(p.HTTPGet.Port, path.Child("httpGet", "port"))...)
	case p.TCPSocket != nil:
		errs = append(errs, validatePortNumberOrName(p.TCPSocket.Port, path.Child("tcpSocket", "port"))...)
	case p.Exec != nil && len(p.Exec.Command) == 0:
		errs = append(errs, field.Required(path.Child("exec", "command"), ""))
	}
	return errs
}

func validatePortNumberOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return invalid(utilvalidation.IsValidPortNum(port.IntValue()), path, port.IntValue())
	}
	return invalid(utilvalidation.IsValidPortName(port.StrVal), path, port.StrVal)
}

func validateVolumes(volumes []corev1.Volume, path *field.Path) (sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, v := range volumes {
		p := path.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(p, ""))
		case names.Has(v.Name):
			errs = append(errs, field.Duplicate(p, v.Name))
		default:
			errs = append(errs, invalid(utilvalidation.IsDNS1123Label(v.Name), p, v.Name)...)
		}
		names.Insert(v.Name)
	}
	return names, errs
}

func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := sets.New[string]()
	for i, m := range mounts {
		p := path.Index(i)
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(p.Child("name"), ""))
		case !volumes.Has(m.Name):
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		}
		if paths.Has(m.MountPath) {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths.Insert(m.MountPath)
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(p.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, relative(m.SubPath, p.Child("subPath"))...)
		errs = append(errs, relative(m.SubPathExpr, p.Child("subPathExpr"))...)
	}
	return errs
}
