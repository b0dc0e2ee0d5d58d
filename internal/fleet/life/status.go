package life

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/qos"
)

// Status is what the node reports of the pod now. What others have put into the status stays.
func (p *Pod) Status(now time.Time) corev1.PodStatus {
	old := &p.api.Status
	if p.final != nil {
		out := *p.final.DeepCopy()
		out.ObservedGeneration = p.api.Generation
		return out
	}
	out := corev1.PodStatus{
		ObservedGeneration: p.api.Generation, StartTime: stamp(p.since), QOSClass: old.QOSClass,
		Reason: old.Reason, Message: old.Message, NominatedNodeName: old.NominatedNodeName, Resize: old.Resize,
		ResourceClaimStatuses: old.ResourceClaimStatuses, ExtendedResourceClaimStatus: old.ExtendedResourceClaimStatus,
	}
	if out.QOSClass == "" {
		out.QOSClass = qos.Class(&p.api.Spec)
	}
	for _, c := range p.containers {
		list := &out.ContainerStatuses
		switch c.kind {
		case kindInit, kindSidecar:
			list = &out.InitContainerStatuses
		case kindEphemeral:
			list = &out.EphemeralContainerStatuses
		}
		*list = append(*list, c.status(p, now))
	}
	p.addresses(&out)
	out.Phase = p.phase()
	if e := p.ending; e != nil && e.phase != "" {
		out.Reason, out.Message = e.reason, e.message
	}
	p.conditions(&out, now)
	if p.ending != nil && p.ending.refused {
		out.InitContainerStatuses, out.ContainerStatuses, out.EphemeralContainerStatuses = nil, nil, nil
	}
	return out
}

func (p *Pod) addresses(out *corev1.PodStatus) {
	out.HostIP = p.host.Address()
	out.HostIPs = []corev1.HostIP{{IP: out.HostIP}}
	ip := p.ip
	if p.api.Spec.HostNetwork {
		ip = out.HostIP
	}
	if ip != "" {
		out.PodIP, out.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	}
}

// phase sums the containers up.
func (p *Pod) phase() corev1.PodPhase {
	switch {
	case terminal(p.api.Status.Phase):
		return p.api.Status.Phase
	case p.ending != nil && p.ended && p.ending.phase != "":
		return p.ending.phase
	}
	begun, all, ok := false, true, true
	for _, c := range p.containers {
		if c.kind == kindOrdinary {
			begun, all = begun || c.id != "", all && c.id != ""
			ok = ok && c.succeeded()
		}
	}
	switch {
	case p.ended && ok:
		return corev1.PodSucceeded
	case p.ended:
		return corev1.PodFailed
	case begun && all:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func (c *container) status(p *Pod, now time.Time) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, RestartCount: c.attempt, ContainerID: c.id}
	if c.id != "" {
		s.ImageID = imageID(c.spec.Image)
	}
	if c.former != nil {
		s.LastTerminationState.Terminated = c.former.DeepCopy()
	}
	switch c.state {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: *stamp(c.started)}
	case exited:
		c.exitedStatus(p, &s)
	default:
		s.State.Waiting = c.waits(p)
	}
	started := c.state == running && c.probes.isStarted(now)
	switch c.kind {
	case kindInit:
		s.Ready, started = c.succeeded(), c.state == running
	case kindSidecar, kindOrdinary:
		s.Ready = started && c.probes.isReady(now)
	}
	if c.kind != kindEphemeral {
		s.Started = &started
		c.resources(&s)
	}
	for i := range c.spec.VolumeMounts {
		if m := &c.spec.VolumeMounts[i]; c.id != "" {
			s.VolumeMounts = append(s.VolumeMounts, mountStatus(m))
		}
	}
	return s
}

func mountStatus(m *corev1.VolumeMount) corev1.VolumeMountStatus {
	s := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
	if m.ReadOnly {
		mode := corev1.RecursiveReadOnlyDisabled
		if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != mode {
			mode = corev1.RecursiveReadOnlyEnabled
		}
		s.RecursiveReadOnly = &mode
	}
	return s
}

// exitedStatus shows a container that waits for its next run as waiting, with its end as its last state.
func (c *container) exitedStatus(p *Pod, s *corev1.ContainerStatus) {
	if c.restart.IsZero() || c.delay == 0 {
		s.State.Terminated = c.terminated()
		return
	}
	s.LastTerminationState.Terminated = c.terminated()
	s.State.Waiting = &corev1.ContainerStateWaiting{
		Reason:  reasonCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", c.delay, c.spec.Name, fullName(p.api)),
	}
}

func (c *container) waits(p *Pod) *corev1.ContainerStateWaiting {
	w := &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
	if w.Reason == "" {
		w.Reason = reasonCreating
		if len(p.api.Spec.InitContainers) > 0 {
			w.Reason = reasonInitializing
		}
	}
	return w
}

func (c *container) terminated() *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: c.end.code, Reason: c.end.reason, Message: c.end.message,
		StartedAt: *stamp(c.started), FinishedAt: *stamp(c.end.at), ContainerID: c.id,
	}
}

// resources are those of the spec: what is asked for is granted at once.
func (c *container) resources(s *corev1.ContainerStatus) {
	r := c.spec.Resources
	if len(r.Requests) > 0 {
		s.AllocatedResources = r.Requests
	}
	s.Resources = &corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
}

func imageID(image string) string {
	sum := sha256.Sum256([]byte(image))
	return "sim://sha256:" + hex.EncodeToString(sum[:])
}

// stamp is a time as the API keeps it, so that a status that went through it compares equal.
func stamp(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.Truncate(time.Second))
	return &out
}
