// Package podspec holds the defaults and the validation of PodSpec and PodTemplateSpec, which a pod shares with every kind that makes pods.
package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Default fills in what the API reference gives as defaults for a pod's specification.
func Default(spec *corev1.PodSpec) {
	set(&spec.DNSPolicy, corev1.DNSClusterFirst)
	set(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	set(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setPointer(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	// The two names of one field: the older one is still read by many clients.
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c, spec.HostNetwork)
		spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		setPointer(&c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor)
		setPointer(&c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
	}
	defaultResources(spec.Overhead)
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	set(&c.ImagePullPolicy, pullPolicy(c.Image))
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork && c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
	for i := range c.Env {
		if source := c.Env[i].ValueFrom; source != nil && source.FieldRef != nil {
			set(&source.FieldRef.APIVersion, "v1")
		}
	}
	defaultRequests(&c.Resources)
	for i := range c.ResizePolicy {
		set(&c.ResizePolicy[i].RestartPolicy, corev1.NotRequired)
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				defaultHTTPGet(hook.HTTPGet)
			}
		}
	}
}

// pullPolicy is Always for images that may change under their name: those without a tag, and ":latest".
func pullPolicy(image string) corev1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return corev1.PullIfNotPresent
	}
	_, tag, _ := strings.Cut(name, ":")
	if tag == "" || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// defaultRequests takes a limit as the request where no request was given, and rounds both up to what the API can say.
func defaultRequests(r *corev1.ResourceRequirements) {
	defaultResources(r.Limits)
	defaultResources(r.Requests)
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultResources rounds every quantity up to thousandths, the finest that the API keeps.
func defaultResources(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil && p.GRPC.Service == nil {
		p.GRPC.Service = ptr.To("")
	}
}

func defaultHTTPGet(action *corev1.HTTPGetAction) {
	if action == nil {
		return
	}
	set(&action.Path, "/")
	set(&action.Scheme, corev1.URISchemeHTTP)
	if action.Port == (intstr.IntOrString{}) {
		action.Port = intstr.FromInt32(80)
	}
}

func set[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
