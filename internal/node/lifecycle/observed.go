package lifecycle

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// State is what the runtime says about a container.
type State int

// The states of the CRI.
const (
	Created State = iota
	Running
	Exited
	Unknown
)

func (s State) String() string {
	return [...]string{"created", "running", "exited", "unknown"}[s]
}

// Sandbox is one observed pod sandbox.
type Sandbox struct {
	ID        string
	Ready     bool
	Attempt   uint32
	CreatedAt time.Time
	// IPs is empty for pods on the host's network.
	IPs []string
}

// Container is one observed container: one attempt to run a container of the pod's spec.
type Container struct {
	ID, Name, SandboxID string
	// Attempt counts from 0 and becomes the restartCount.
	Attempt                          int32
	State                            State
	CreatedAt, StartedAt, FinishedAt time.Time
	ExitCode                         int32
	Reason, Message                  string
	Image, ImageID                   string
	// SpecHash identifies the part of the container's spec whose change needs a restart.
	SpecHash   string
	StopSignal *v1.Signal
	User       *v1.ContainerUser
	// Resources is what the runtime enforces now, nil when it doesn't say.
	Resources *v1.ResourceRequirements
}

func (c *Container) alive() bool { return c.State != Exited }

// Observed is all that the runtime has of one pod, in any order.
type Observed struct {
	Sandboxes  []Sandbox
	Containers []Container
}

// current returns the newest sandbox, nil when there is none.
func (o *Observed) current() *Sandbox {
	var newest *Sandbox
	for i := range o.Sandboxes {
		s := &o.Sandboxes[i]
		if newest == nil || s.Attempt > newest.Attempt || s.Attempt == newest.Attempt && s.CreatedAt.After(newest.CreatedAt) {
			newest = s
		}
	}
	return newest
}

func newer(a, b *Container) bool {
	return a.Attempt > b.Attempt || a.Attempt == b.Attempt && a.CreatedAt.After(b.CreatedAt)
}

// latest returns the newest attempt of a container, nil when there is none.
func (o *Observed) latest(name string) *Container {
	var found *Container
	for i := range o.Containers {
		if c := &o.Containers[i]; c.Name == name && (found == nil || newer(c, found)) {
			found = c
		}
	}
	return found
}

// previous returns the newest finished attempt that is older than c.
func (o *Observed) previous(c *Container) *Container {
	var found *Container
	for i := range o.Containers {
		p := &o.Containers[i]
		if p.Name == c.Name && p.ID != c.ID && p.State == Exited && newer(c, p) && (found == nil || newer(p, found)) {
			found = p
		}
	}
	return found
}

// Running tells whether there is a sandbox in which containers can run.
func (o *Observed) Running() bool {
	s := o.current()
	return s != nil && s.Ready
}
