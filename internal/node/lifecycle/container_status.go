package lifecycle

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"time"
)

type kind int

const (
	kindInit kind = iota
	kindOrdinary
	kindEphemeral
)

// containerStatus builds the status of one container from its newest attempt, the one before, the last failure to start and the probes.
func (d *decider) containerStatus(c *v1.Container, k kind) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: c.Name, Image: c.Image, State: d.waiting(c.Name)}
	last := d.Observed.latest(c.Name)
	if last != nil && last.alive() && d.Busy.Start == c.Name {
		// Until the start is complete, postStart hook included, it is as if it had not begun.
		last = d.Observed.previous(last)
	}
	if last == nil {
		d.fromAPI(&s, c, k)
	} else {
		d.fromRuntime(&s, last)
		if last.State == Exited && d.waits(c, last, k) {
			s.LastTerminationState, s.State = s.State, d.waiting(c.Name)
		}
	}
	d.readiness(&s, c, last, k)
	if last != nil {
		s.VolumeMounts = volumeMounts(c)
	}
	if k != kindEphemeral {
		d.resources(&s, c, last)
	}
	return s
}

// volumeMounts tells how the volumes are mounted in a container that was made. A recursively read-only mount was possible, or it would not have been.
func volumeMounts(c *v1.Container) (out []v1.VolumeMountStatus) {
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != v1.RecursiveReadOnlyDisabled {
				mode = v1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		out = append(out, s)
	}
	return out
}

// waiting is the state of a container that doesn't run: why its start failed, or what it waits for.
func (d *decider) waiting(name string) v1.ContainerState {
	reason := ReasonCreating
	if len(d.pod.Spec.InitContainers) > 0 {
		reason = ReasonPodInit
	}
	w := &v1.ContainerStateWaiting{Reason: reason}
	if m := d.mem.Containers[name]; m != nil && m.Failed.Reason != "" {
		w.Reason, w.Message = m.Failed.Reason, m.Failed.Message
	}
	return v1.ContainerState{Waiting: w}
}

// waits tells whether an exited container is shown as waiting: it will be restarted and something holds that up. While nothing does,
// its end is more informative.
func (d *decider) waits(c *v1.Container, last *Container, k kind) bool {
	if k == kindEphemeral || d.mem.Ending != nil || d.pod.DeletionTimestamp != nil {
		return false
	}
	m := d.mem.Containers[c.Name]
	return m != nil && m.Failed.Reason != "" && restarts(d.pod, c, last.ExitCode, k == kindInit)
}

// fromAPI keeps what the API knows about a container that the runtime doesn't have (any more).
func (d *decider) fromAPI(s *v1.ContainerStatus, c *v1.Container, k kind) {
	old := d.oldStatus(s.Name)
	if old == nil {
		return
	}
	s.RestartCount = old.RestartCount
	t := d.lost(c, old)
	if k == kindEphemeral {
		t = ephemeralEnd(old)
	}
	if t != nil && k != kindInit {
		s.ContainerID, s.ImageID, s.Image = old.ContainerID, old.ImageID, old.Image
		s.State, s.LastTerminationState = v1.ContainerState{Terminated: t}, *old.LastTerminationState.DeepCopy()
		return
	}
	switch {
	case old.State.Terminated != nil && (d.mem.Ending != nil || d.pod.DeletionTimestamp != nil):
		*s = *old.DeepCopy()
	case old.State.Terminated != nil:
		s.LastTerminationState = *old.State.DeepCopy()
	case old.State.Running != nil:
		s.LastTerminationState.Terminated = unknownEnd(old)
	default:
		s.LastTerminationState = *old.LastTerminationState.DeepCopy()
	}
}

// lost returns how a container ended that the runtime doesn't have any more and that is not to be restarted: as the API has it, or
// unknown when it was running. It is nil when the container may run again, in particular after an orderly shutdown of the node.
func (d *decider) lost(c *v1.Container, old *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if old == nil || d.mem.Interrupted {
		return nil
	}
	var t *v1.ContainerStateTerminated
	if old.State.Terminated != nil {
		t = old.State.Terminated.DeepCopy()
	} else if old.State.Running != nil {
		t = unknownEnd(old)
	}
	if t == nil || restarts(d.pod, c, t.ExitCode, false) {
		return nil
	}
	return t
}

// ephemeralEnd is how an ephemeral container ended that the runtime doesn't have any more, nil when it was never run. It runs once: that its pod
// is run again, in another sandbox, is no reason to run it again.
func ephemeralEnd(old *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case old == nil:
		return nil
	case old.State.Terminated != nil:
		return old.State.Terminated.DeepCopy()
	case old.State.Running != nil:
		return unknownEnd(old)
	}
	return nil
}

func unknownEnd(old *v1.ContainerStatus) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		Reason: reasonUnknown, ExitCode: exitUnknown, StartedAt: old.State.Running.StartedAt, ContainerID: old.ContainerID,
		Message: "The container could not be located when the pod was deleted.  The container used to be Running",
	}
}

func (d *decider) fromRuntime(s *v1.ContainerStatus, c *Container) {
	s.ContainerID = d.containerID(c)
	s.ImageID = c.ImageID
	if c.Image != "" {
		s.Image = c.Image
	}
	s.RestartCount = c.Attempt
	s.StopSignal, s.User = c.StopSignal, c.User
	switch c.State {
	case Running:
		s.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: stamp(c.StartedAt)}}
	case Exited:
		s.State = v1.ContainerState{Terminated: d.terminated(c)}
	}
	if p := d.Observed.previous(c); p != nil {
		s.LastTerminationState.Terminated = d.terminated(p)
	} else if old := d.oldStatus(c.Name); old != nil && old.ContainerID != s.ContainerID && c.Attempt > 0 {
		// The runtime has only this attempt: the API knows how the one before ended.
		if t := old.State.Terminated; t != nil {
			s.LastTerminationState.Terminated = t.DeepCopy()
		} else if t := old.LastTerminationState.Terminated; t != nil {
			s.LastTerminationState.Terminated = t.DeepCopy()
		}
	} else if old != nil && old.ContainerID == s.ContainerID && old.LastTerminationState.Terminated != nil {
		s.LastTerminationState = *old.LastTerminationState.DeepCopy()
	}
}

func (d *decider) containerID(c *Container) string { return d.Host.Runtime + "://" + c.ID }

func (d *decider) terminated(c *Container) *v1.ContainerStateTerminated {
	reason := c.Reason
	if reason == "" {
		reason = "Error"
		if c.ExitCode == 0 {
			reason = "Completed"
		}
	}
	return &v1.ContainerStateTerminated{
		ExitCode: c.ExitCode, Reason: reason, Message: c.Message,
		StartedAt: stamp(c.StartedAt), FinishedAt: stamp(c.FinishedAt), ContainerID: d.containerID(c),
	}
}

// stamp is an instant as the API keeps it: in whole seconds, so that a status that went through the API compares equal.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// readiness fills in started and ready. A running container is started when its startup probe succeeded, and ready when its readiness
// probe did; without a probe it is so at once. An init container is ready when it is done.
func (d *decider) readiness(s *v1.ContainerStatus, c *v1.Container, last *Container, k kind) {
	if k == kindEphemeral {
		return
	}
	started := false
	if k == kindInit && !IsSidecar(c) {
		s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		started = s.State.Running != nil
	} else if s.State.Running != nil && last != nil {
		started = d.started(c, last)
		s.Ready = started && (c.ReadinessProbe == nil || d.mem.ProbeOf(c.Name, last.ID).Ready)
	}
	s.Started = &started
}

// resources reports what the container was granted and what the runtime enforces (KEP-1287).
func (d *decider) resources(s *v1.ContainerStatus, c *v1.Container, last *Container) {
	granted := d.granted(c)
	if len(granted.Requests) > 0 {
		s.AllocatedResources = granted.Requests.DeepCopy()
	}
	actual := granted
	if last != nil && last.Resources != nil && s.State.Running != nil {
		actual = *last.Resources
	}
	s.Resources = actual.DeepCopy()
	s.Resources.Claims = nil
}
