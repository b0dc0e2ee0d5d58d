package lifecycle

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Reasons of containers that wait.
const (
	ReasonCreating  = "ContainerCreating"
	ReasonPodInit   = "PodInitializing"
	ReasonCrashLoop = "CrashLoopBackOff"
	ReasonPull      = "ErrImagePull"
	ReasonPullBack  = "ImagePullBackOff"
	ReasonConfig    = "CreateContainerConfigError"
	ReasonCreate    = "CreateContainerError"
	ReasonRun       = "RunContainerError"
	ReasonHook      = "PostStartHookError"
)

// pullErrorShown is for how long a failed pull is shown as such before its back-off is.
const pullErrorShown = 2 * time.Second

// runContainers goes through the containers in the order of the spec. Ephemeral containers wait for nobody; an init container waits for
// those before it; ordinary containers wait for all init containers. One start is ordered at a time.
func (d *decider) runContainers(sandbox *Sandbox) {
	for i := range d.pod.Spec.EphemeralContainers {
		c := (*v1.Container)(&d.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if d.Observed.latest(c.Name) == nil && ephemeralEnd(d.oldStatus(c.Name)) == nil {
			d.start(sandbox, c, nil)
		}
	}
	if !d.runInit(sandbox) {
		return
	}
	for i := range d.pod.Spec.Containers {
		d.runOrdinary(sandbox, &d.pod.Spec.Containers[i])
	}
}

// runInit reports whether the ordinary containers may start: every init container is done, every sidecar has started.
func (d *decider) runInit(sandbox *Sandbox) bool {
	begun := d.ordinaryBegun(sandbox)
	for i := range d.pod.Spec.InitContainers {
		c := &d.pod.Spec.InitContainers[i]
		last := d.Observed.latest(c.Name)
		if last != nil && last.SandboxID != sandbox.ID {
			// A new sandbox initialises anew; the former attempts only count on.
			if !begun {
				d.start(sandbox, c, last)
				return false
			}
			last = nil
		}
		if IsSidecar(c) {
			if !d.runSidecar(sandbox, c, last) && !begun {
				return false
			}
			continue
		}
		if begun {
			continue
		}
		if !d.runOneInit(sandbox, c, last) {
			return false
		}
	}
	return true
}

// ordinaryBegun tells whether an ordinary container was ever made in this sandbox: initialisation is then over, even when the records
// of init containers are gone.
func (d *decider) ordinaryBegun(sandbox *Sandbox) bool {
	for i := range d.pod.Spec.Containers {
		last := d.Observed.latest(d.pod.Spec.Containers[i].Name)
		if last != nil && last.SandboxID == sandbox.ID {
			return true
		}
	}
	return false
}

// runOneInit reports whether the init container is done.
func (d *decider) runOneInit(sandbox *Sandbox, c *v1.Container, last *Container) bool {
	switch {
	case last == nil:
		d.start(sandbox, c, nil)
	case last.State == Exited && last.ExitCode == 0:
		return true
	case last.State == Exited:
		if restarts(d.pod, c, last.ExitCode, true) {
			d.start(sandbox, c, last)
		}
	case last.State == Unknown:
		d.stop(last, d.grace(), fmt.Sprintf("Init container is in %q state, try killing it before restart", "unknown"))
	}
	return false
}

// runSidecar reports whether the sidecar has started, so that what comes after it may start.
func (d *decider) runSidecar(sandbox *Sandbox, c *v1.Container, last *Container) bool {
	if last == nil || last.State == Exited {
		d.start(sandbox, c, last)
		return false
	}
	if d.unhealthy(c, last) {
		return true
	}
	d.resize(c, last)
	return last.State == Running && d.started(c, last)
}

func (d *decider) runOrdinary(sandbox *Sandbox, c *v1.Container) {
	last := d.Observed.latest(c.Name)
	switch {
	case last == nil:
		if d.lost(c, d.oldStatus(c.Name)) == nil {
			d.start(sandbox, c, nil)
		}
	case last.State == Exited:
		if restarts(d.pod, c, last.ExitCode, false) {
			d.start(sandbox, c, last)
		}
	case last.State == Unknown:
		d.stop(last, d.grace(), fmt.Sprintf("Container is in %q state, try killing it before restart", "unknown"))
	case last.SpecHash != "" && last.SpecHash != SpecHash(c):
		d.stop(last, d.grace(), fmt.Sprintf("Container %s definition changed, will be restarted", c.Name))
	default:
		if !d.unhealthy(c, last) {
			d.resize(c, last)
		}
	}
}

// unhealthy stops a running container whose startup or liveness probe gave up.
func (d *decider) unhealthy(c *v1.Container, last *Container) bool {
	probe := d.mem.ProbeOf(c.Name, last.ID)
	if last.State != Running || probe.Unhealthy == "" {
		return false
	}
	grace, spec := d.grace(), c.LivenessProbe
	if probe.Unhealthy == "startup" {
		spec = c.StartupProbe
	}
	if spec != nil && spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
	}
	d.stop(last, grace, fmt.Sprintf("Container %s failed %s probe, will be restarted", c.Name, probe.Unhealthy))
	return true
}

// started tells whether a running container's startup probe has succeeded, or there is none.
func (d *decider) started(c *v1.Container, last *Container) bool {
	return c.StartupProbe == nil || d.mem.ProbeOf(c.Name, last.ID).Started
}

// start orders the next attempt of a container unless another one is being started or it has to wait.
func (d *decider) start(sandbox *Sandbox, c *v1.Container, last *Container) {
	m := d.mem.Of(c.Name)
	// The back-off holds once for each exit; a start that failed after it has its own pause.
	exited := last != nil && last.State == Exited && !m.failedAfter(last.FinishedAt)
	if exited && d.crashLoops(c, m, last) {
		return
	}
	if m.Failed.Reason == ReasonCrashLoop {
		m.Failed = Retry{}
	}
	if d.Now.Before(m.Failed.At) {
		d.pullBackOff(c, m)
		d.plan.wakeAt(m.Failed.At)
		return
	}
	if d.Busy.Start != "" || d.starting() {
		return
	}
	if exited {
		m.Crash.Next(last.FinishedAt, d.Now)
	}
	d.act(Action{Kind: StartContainer, Container: c.Name, Sandbox: sandbox.ID, Attempt: d.nextAttempt(c.Name, last)})
}

// pullBackOff turns ErrImagePull into ImagePullBackOff after a moment.
func (d *decider) pullBackOff(c *v1.Container, m *ContainerMemory) {
	if m.Failed.Reason != ReasonPull {
		return
	}
	if turn := m.Failed.Since.Add(pullErrorShown); d.Now.Before(turn) {
		d.plan.wakeAt(turn)
		return
	}
	text := fmt.Sprintf("Back-off pulling image %q", c.Image)
	m.Failed.Reason, m.Failed.Message = ReasonPullBack, text+": "+ReasonPull+": "+m.Failed.Message
	d.event(v1.EventTypeNormal, "BackOff", c.Name, text)
	d.event(v1.EventTypeWarning, "Failed", c.Name, "Error: "+ReasonPullBack)
}

func (d *decider) starting() bool {
	for _, a := range d.plan.Actions {
		if a.Kind == StartContainer {
			return true
		}
	}
	return false
}

// failedAfter tells whether after the time given a start failed before there was a container that could exit.
func (m *ContainerMemory) failedAfter(t time.Time) bool {
	switch m.Failed.Reason {
	case "", ReasonCrashLoop, ReasonRun, ReasonHook:
		return false
	}
	return !m.Failed.Since.Before(t)
}

// nextAttempt counts on from what the runtime has, or from what the API knows when the runtime forgot.
func (d *decider) nextAttempt(name string, last *Container) int32 {
	if last == nil {
		last = d.Observed.latest(name)
	}
	if last != nil {
		return last.Attempt + 1
	}
	if old := d.oldStatus(name); old != nil && (old.State.Running != nil || old.State.Terminated != nil || old.LastTerminationState.Terminated != nil) {
		return old.RestartCount + 1
	}
	return 0
}

// crashLoops tells whether the back-off holds the restart up; the container then waits in CrashLoopBackOff.
func (d *decider) crashLoops(c *v1.Container, m *ContainerMemory, last *Container) bool {
	if hash := SpecHash(c); m.CrashHash != hash {
		m.Crash, m.CrashHash = Backoff{}, hash
	}
	left := m.Crash.Holds(last.FinishedAt, d.Now)
	if left == 0 {
		return false
	}
	if m.Failed.Reason != ReasonCrashLoop {
		d.event(v1.EventTypeWarning, "BackOff", c.Name, fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.Name, podRef(d.pod)))
	}
	message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", m.Crash.Delay, c.Name, podRef(d.pod))
	m.Failed = Retry{At: d.Now.Add(left), Reason: ReasonCrashLoop, Message: message}
	d.plan.wakeAt(m.Failed.At)
	return true
}
