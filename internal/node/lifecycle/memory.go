package lifecycle

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Memory is what the agent remembers of a pod between decisions. The zero value is a pod that was never seen.
type Memory struct {
	// StartTime is when the agent accepted the pod (status.startTime).
	StartTime time.Time
	// Ending is set once and for all when the pod has to stop for another reason than its deletion.
	Ending *Ending
	// Interrupted is true when an orderly shutdown of the node stopped the pod: what ran then runs again, whatever the restart policy.
	Interrupted bool
	// EndingSince is when the pod began to end; the grace period counts from it.
	EndingSince time.Time
	// Sandbox remembers failures to create the sandbox.
	Sandbox Retry
	// Containers is keyed by container name.
	Containers map[string]*ContainerMemory
	// Pending says why a resize can't be granted (yet), nil when nothing is pending.
	Pending *v1.PodCondition
	// ResizeError is why the last change of a running container failed.
	ResizeError string
	// Allocated are the resources that the node granted to each container, when they differ from the spec.
	Allocated map[string]v1.ResourceRequirements
}

// Ending says why a pod ends before its containers are done.
type Ending struct {
	// Phase is Failed for evicted, refused and overdue pods; empty leaves it to the containers.
	Phase           v1.PodPhase
	Reason, Message string
	// Grace overrides the pod's own termination grace period.
	Grace *time.Duration
	// Refused pods were never let in: their status tells nothing of containers.
	Refused bool
	// Condition is added to the status (DisruptionTarget).
	Condition *v1.PodCondition
}

// ContainerMemory is what is remembered of one container.
type ContainerMemory struct {
	// Crash is the back-off of restarts, for the spec with hash CrashHash.
	Crash     Backoff
	CrashHash string
	// Pull is the back-off of image pulls, Create that of containers that the runtime can't make.
	Pull, Create Backoff
	// Failed is the last failure to start, with its reason; the zero value when the last start worked.
	Failed Retry
	// Probe holds results that belong to the container with ID Probe.ID; others are stale.
	Probe Probe
}

// Probe holds the last results of one container's probes.
type Probe struct {
	ID             string
	Started, Ready bool
	// Unhealthy is set when the startup or liveness probe gave up: which one.
	Unhealthy string
}

// Retry is an operation that failed and when to try it again.
type Retry struct {
	Failures        int
	Since, At       time.Time
	Reason, Message string
}

// Retries of what fails for reasons outside of the container (a missing ConfigMap, a sandbox that can't be made): soon, then less often.
const (
	retryFirst = 1 * time.Second
	retryMax   = 10 * time.Second
)

// Fail notes one more failure.
func (r *Retry) Fail(now time.Time, reason, message string) {
	delay := retryFirst << min(r.Failures, 10)
	r.Failures++
	r.Since, r.At, r.Reason, r.Message = now, now.Add(min(delay, retryMax)), reason, message
}

// FailStart notes a failed start. An image that can't be pulled and a container that can't be made are tried again ever less often. A container
// that was made but did not come to run, or whose postStart hook failed, counts as one that exited, and what it refers to may soon be there.
func (c *ContainerMemory) FailStart(now time.Time, reason, message string) {
	var pause *Backoff
	switch reason {
	case ReasonPull:
		pause = &c.Pull
	case ReasonCreate:
		pause = &c.Create
	default:
		c.Failed.Fail(now, reason, message)
		return
	}
	pause.Next(now, now)
	c.Failed = Retry{Failures: c.Failed.Failures + 1, Since: now, At: now.Add(pause.Delay), Reason: reason, Message: message}
}

// Started forgets the failures: the container runs.
func (c *ContainerMemory) Started() {
	c.Failed, c.Pull, c.Create = Retry{}, Backoff{}, Backoff{}
}

// Of returns the memory of the named container, which it makes when there is none.
func (m *Memory) Of(name string) *ContainerMemory {
	if m.Containers == nil {
		m.Containers = map[string]*ContainerMemory{}
	}
	c := m.Containers[name]
	if c == nil {
		c = &ContainerMemory{}
		m.Containers[name] = c
	}
	return c
}

// ProbeOf returns the probe results of the container with this ID; stale ones of a former attempt are dropped.
func (m *Memory) ProbeOf(name, id string) *Probe {
	p := &m.Of(name).Probe
	if p.ID != id {
		*p = Probe{ID: id}
	}
	return p
}
