package translate

import (
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerInput is what one attempt of a container is made of, beside its spec.
type ContainerInput struct {
	Attempt int32
	// ImageRef identifies the image in the runtime, Image is the name that the manifest has.
	ImageRef string
	Env      []*cri.KeyValue
	// Values are Env by name, for references in command and args.
	Values map[string]string
	Mounts []*cri.Mount
	// TerminationFile is the host's file behind the termination message path.
	TerminationFile string
	// TargetID is the container whose processes an ephemeral container shares, if any.
	TargetID string
	// Granted are the resources that the node granted, which differ from the spec while a resize waits.
	Granted v1.ResourceRequirements
}

// Container is the configuration of one attempt of a container.
func Container(n *Node, pod *v1.Pod, c *v1.Container, in ContainerInput) *cri.ContainerConfig {
	lookup := func(name string) (string, bool) { v, ok := in.Values[name]; return v, ok }
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: c.Name, Attempt: uint32(in.Attempt)},
		Image:       &cri.ImageSpec{Image: in.ImageRef, UserSpecifiedImage: c.Image},
		Command:     expandAll(c.Command, lookup),
		Args:        expandAll(c.Args, lookup),
		WorkingDir:  c.WorkingDir,
		Envs:        in.Env,
		Mounts:      in.Mounts,
		Labels:      containerLabels(pod, c),
		Annotations: containerAnnotations(pod, c, in.Attempt, in.TerminationFile),
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &cri.LinuxContainerConfig{
			Resources:       Resources(pod, c, in.Granted, n.memory()),
			SecurityContext: security(n, pod, c, in.TargetID),
		},
	}
}

func expandAll(list []string, lookup func(string) (string, bool)) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Expand(s, lookup)
	}
	return out
}

func stopSignal(c *v1.Container) cri.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return cri.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	return cri.Signal(cri.Signal_value["SIGNAL_"+string(*c.Lifecycle.StopSignal)])
}

// StopSignalOf is the signal as the API names it, nil for the runtime's default.
func StopSignalOf(s cri.Signal) *v1.Signal {
	name, ok := cri.Signal_name[int32(s)]
	if !ok || s == cri.Signal_SIGNAL_RUNTIME_DEFAULT {
		return nil
	}
	out := v1.Signal(name[len("SIGNAL_"):])
	return &out
}
