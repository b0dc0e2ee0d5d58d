package life

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

type kind int

const (
	kindInit kind = iota
	kindSidecar
	kindOrdinary
	kindEphemeral
)

type state int

const (
	waiting state = iota
	running
	exited
)

// container is one container of a pod.
type container struct {
	spec  *corev1.Container
	kind  kind
	state state

	// reason and message say why it waits, if it waits for something of its own.
	reason, message string
	// pullFailures is how often the pull of the image has failed, failedAt when last.
	pullFailures int32
	failedAt     time.Time

	// attempt is the number of the run, from 0; id is empty before the first one began.
	attempt int32
	id      string
	does    behavior.Container
	started time.Time
	// ready is what the probes will say of this run, end how it will end.
	probes probes
	end    end
	// stopping tells that the run was told to end.
	stopping bool
	// restart is when the next run begins, after the back-off of delay.
	restart time.Time
	delay   time.Duration
	// former is the run before.
	former *corev1.ContainerStateTerminated
}

// end is how a run ends; the zero time is never.
type end struct {
	at              time.Time
	code            int32
	reason, message string
	// killed tells that its liveness or startup probe brought it about.
	killed string
}

// The back-off of Kubernetes between the runs of a container: none after the first, then 10 s, doubled up to 300 s; a run of ten minutes begins it anew.
const (
	backoffFirst = 10 * time.Second
	backoffMax   = 300 * time.Second
	backoffReset = 10 * time.Minute
)

// Reasons for which a container waits.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonPull         = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonCrashLoop    = "CrashLoopBackOff"
)

// pullNoted is how long a failed pull is told as such before the wait for the next is.
const pullNoted = time.Second

func (c *container) step(p *Pod, now time.Time) bool {
	switch c.state {
	case running:
		return c.run(p, now)
	case exited:
		return c.again(p, now)
	}
	from, may := p.turn(c)
	if !may || !p.host.Starts() {
		return false
	}
	return p.due(from, now) && c.pull(p, from, now)
}

// turn tells since when a container may start: the init containers one after the other, then the ordinary ones.
func (p *Pod) turn(c *container) (from time.Time, may bool) {
	from = p.sandbox
	for _, before := range p.containers {
		if before == c || before.kind > kindSidecar {
			break
		}
		switch {
		case before.kind == kindInit && before.succeeded():
			from = later(from, before.end.at)
		case before.kind == kindSidecar && before.id != "" && (before.state != running || !before.probes.started.IsZero() || before.attempt > 0):
			from = later(from, before.probes.started)
		default:
			return from, false
		}
	}
	return from, true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (c *container) succeeded() bool { return c.state == exited && c.end.code == 0 }

// pull gets the image and then begins the first run. from is when the container could have begun.
func (c *container) pull(p *Pod, from, now time.Time) bool {
	c.does = p.behavior.Container(c.spec, c.kind == kindInit, c.attempt)
	if c.pullFailures > 0 {
		from = c.failedAt.Add(pullBackoff(c.pullFailures))
		if !p.due(from, now) {
			if c.reason == reasonPull && p.due(c.failedAt.Add(pullNoted), now) {
				c.reason, c.message = reasonPullBackOff, fmt.Sprintf("Back-off pulling image %q: %s: %s", c.spec.Image, reasonPull, c.does.PullError)
				p.tell("BackOff", fmt.Sprintf("Back-off pulling image %q", c.spec.Image))
			}
			return false
		}
	}
	done := from
	if c.spec.ImagePullPolicy == corev1.PullAlways || !p.host.HasImage(c.spec.Image) {
		done = from.Add(c.does.PullDelay)
	}
	if !p.due(done, now) {
		return false
	}
	if c.does.PullError != "" && (c.does.PullFailures == 0 || c.pullFailures < c.does.PullFailures) {
		c.pullFailures++
		c.failedAt = done
		if c.reason == "" {
			c.reason, c.message = reasonPull, c.does.PullError
		}
		p.tell("Failed", fmt.Sprintf("Failed to pull image %q: %s", c.spec.Image, c.does.PullError))
		return true
	}
	c.start(p, done)
	return true
}

func pullBackoff(failures int32) time.Duration {
	return min(backoffFirst<<min(failures-1, 5), backoffMax)
}

// start begins a run.
func (c *container) start(p *Pod, at time.Time) {
	c.id, c.reason, c.message = containerID(p.api, c.spec.Name, c.attempt), "", ""
	c.plan(p, at)
}

// plan works out what the run that began at a time comes to.
func (c *container) plan(p *Pod, at time.Time) {
	c.state, c.started, c.stopping = running, at, false
	c.does = p.behavior.Container(c.spec, c.kind == kindInit, c.attempt)
	c.end = end{}
	if c.does.Ends {
		c.end = end{at: at.Add(c.does.RunFor), code: c.does.ExitCode, reason: c.does.ExitReason, message: c.does.ExitMessage}
	}
	c.probes = planProbes(c.spec, &c.does, at)
	if kill := c.probes.kill; !kill.IsZero() && (c.end.at.IsZero() || kill.Before(c.end.at)) {
		c.stopAt(kill, graceOf(p.api, c.probes.killer))
		c.end.killed = c.probes.killedBy
	}
}

func graceOf(pod *corev1.Pod, probe *corev1.Probe) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		seconds = *probe.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// stopAt tells the container at a time to end within its grace. An end that comes before is not changed.
func (c *container) stopAt(at time.Time, grace time.Duration) {
	stop := end{at: at.Add(c.does.TerminationDelay), code: c.does.TerminationExitCode}
	if c.does.TerminationDelay > grace {
		stop = end{at: at.Add(grace), code: behavior.ExitKilled}
	}
	if c.end.at.IsZero() || stop.at.Before(c.end.at) {
		c.end = stop
	}
}

func (c *container) run(p *Pod, now time.Time) bool {
	if next, ok := c.probes.next(now); ok {
		p.await(next)
	}
	if c.end.at.IsZero() || !p.due(c.end.at, now) {
		return false
	}
	c.exit(p)
	return true
}

// exit ends the run as it was planned, and decides whether there is another one.
func (c *container) exit(p *Pod) {
	c.state, c.restart = exited, time.Time{}
	if c.end.reason == "" {
		c.end.reason = "Error"
		if c.end.code == 0 {
			c.end.reason = "Completed"
		}
	}
	if c.end.killed != "" {
		p.tell("Unhealthy", c.end.killed)
	}
	if p.ending != nil || c.kind == kindEphemeral || !restarts(&p.api.Spec, c.spec, c.kind, c.end.code) {
		return
	}
	c.backoff()
	if c.delay > 0 {
		p.tell("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.spec.Name, fullName(p.api)))
	}
}

// backoff sets the time of the next run.
func (c *container) backoff() {
	switch {
	case c.attempt == 0 || c.end.at.Sub(c.started) >= backoffReset:
		c.delay = 0
	case c.delay == 0:
		c.delay = backoffFirst
	default:
		c.delay = min(2*c.delay, backoffMax)
	}
	c.restart = c.end.at.Add(c.delay)
}

// again begins the next run when its time has come.
func (c *container) again(p *Pod, now time.Time) bool {
	if c.restart.IsZero() || !p.due(c.restart, now) || !p.host.Starts() {
		return false
	}
	c.former = c.terminated()
	c.attempt++
	c.start(p, c.restart)
	return true
}

func fullName(pod *corev1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}

// containerID is the name of a run. It follows from what it is a run of, so that a pod that is adopted has the same.
func containerID(pod *corev1.Pod, name string, attempt int32) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, name, attempt))
	return "sim://" + hex.EncodeToString(sum[:])
}
