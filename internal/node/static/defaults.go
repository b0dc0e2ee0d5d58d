package static

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// setDefaults fills in what the API server would: only what the agent reads.
func setDefaults(pod *v1.Pod) {
	s := &pod.Spec
	setDefault(&s.RestartPolicy, v1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, v1.DNSClusterFirst)
	setDefault(&s.SchedulerName, v1.DefaultSchedulerName)
	setPointer(&s.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	setPointer(&s.EnableServiceLinks, v1.DefaultEnableServiceLinks)
	if s.SecurityContext == nil {
		s.SecurityContext = &v1.PodSecurityContext{}
	}
	for _, list := range [][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			containerDefaults(&list[i], s.HostNetwork)
		}
	}
	for i := range s.Volumes {
		volumeDefaults(&s.Volumes[i])
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func containerDefaults(c *v1.Container, hostNetwork bool) {
	setDefault(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, v1.ProtocolTCP)
		if hostNetwork && c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
	for name, limit := range c.Resources.Limits {
		if _, set := c.Resources.Requests[name]; !set {
			if c.Resources.Requests == nil {
				c.Resources.Requests = v1.ResourceList{}
			}
			c.Resources.Requests[name] = limit.DeepCopy()
		}
	}
	for _, p := range []*v1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p != nil {
			probeDefaults(p)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil && h.HTTPGet != nil {
				httpDefaults(h.HTTPGet)
			}
		}
	}
}

// pullPolicy is Always for what may be another image tomorrow: the tag latest, or none.
func pullPolicy(image string) v1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return v1.PullIfNotPresent
	}
	if _, tag, tagged := strings.Cut(name, ":"); tagged && tag != "latest" {
		return v1.PullIfNotPresent
	}
	return v1.PullAlways
}

func probeDefaults(p *v1.Probe) {
	for _, f := range []struct {
		field *int32
		value int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if p.HTTPGet != nil {
		httpDefaults(p.HTTPGet)
	}
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func httpDefaults(h *v1.HTTPGetAction) {
	setDefault(&h.Path, "/")
	setDefault(&h.Scheme, v1.URISchemeHTTP)
}

func volumeDefaults(v *v1.Volume) {
	switch {
	case v.HostPath != nil:
		setPointer(&v.HostPath.Type, v1.HostPathUnset)
	case v.DownwardAPI != nil:
		setPointer(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
	}
}
