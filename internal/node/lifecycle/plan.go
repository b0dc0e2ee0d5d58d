package lifecycle

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Input is all that one decision depends on.
type Input struct {
	Pod *v1.Pod
	// Gone is true when the pod is no longer in the API: it is ended, and no status is written.
	Gone     bool
	Now      time.Time
	Observed Observed
	Memory   *Memory
	Busy     Busy
	Host     Host
}

// Host is what a status tells about the node.
type Host struct {
	IPs []string
	// Runtime is the prefix of container IDs (containerd, bayplan ...).
	Runtime string
}

// Busy names the operations in flight; Decide never orders them twice.
type Busy struct {
	// Sandbox is true while a sandbox is made.
	Sandbox bool
	// Start is the name of the container that is being started: one at a time, in the order of the spec.
	Start string
	// Stops holds the containers and sandboxes that are being stopped, by ID, and with what grace.
	Stops map[string]time.Duration
	// Updates holds the containers whose resources are being changed, by ID.
	Updates map[string]bool
}

func (b *Busy) idle() bool {
	return !b.Sandbox && b.Start == "" && len(b.Stops) == 0 && len(b.Updates) == 0
}

// Stage is how far a pod's life has come.
type Stage int

// The stages, in order.
const (
	StageRunning Stage = iota
	StageEnding
	StageEnded
)

func (s Stage) String() string { return [...]string{"running", "ending", "ended"}[s] }

// Plan is the outcome of one decision.
type Plan struct {
	Stage   Stage
	Actions []Action
	Events  []Event
	Status  v1.PodStatus
	// Wake is when to decide again even if nothing happens; zero means never.
	Wake time.Time
}

func (p *Plan) wakeAt(t time.Time) {
	if p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
	}
}

// Event is an event to record on the pod, or on one container of it.
type Event struct {
	Type, Reason, Container, Message string
}

// ActionKind is a kind of operation.
type ActionKind string

// The operations that a plan can order.
const (
	CreateSandbox   ActionKind = "create-sandbox"
	StopSandbox     ActionKind = "stop-sandbox"
	RemoveSandbox   ActionKind = "remove-sandbox"
	StartContainer  ActionKind = "start-container"
	StopContainer   ActionKind = "stop-container"
	RemoveContainer ActionKind = "remove-container"
	UpdateContainer ActionKind = "update-container"
)

// Action is one operation. It runs to its end independent of others; its outcome is a new observation or a failure in Memory.
type Action struct {
	Kind ActionKind
	// ID is the container or sandbox that is stopped or removed. With CreateSandbox it is the former sandbox, to be stopped first.
	ID string
	// Container is the name in the pod's spec.
	Container string
	// Sandbox is where a container is started.
	Sandbox string
	Attempt int32
	// Grace is how long a container may take to stop.
	Grace time.Duration
	// Message is the text of the Killing event.
	Message string
}

func (a Action) String() string {
	switch a.Kind {
	case CreateSandbox:
		return fmt.Sprintf("%s attempt=%d", a.Kind, a.Attempt)
	case StartContainer:
		return fmt.Sprintf("%s %s attempt=%d", a.Kind, a.Container, a.Attempt)
	case StopContainer:
		return fmt.Sprintf("%s %s grace=%s: %s", a.Kind, a.Container, a.Grace, a.Message)
	case UpdateContainer:
		return fmt.Sprintf("%s %s", a.Kind, a.Container)
	case RemoveContainer:
		return fmt.Sprintf("%s %s attempt=%d", a.Kind, a.Container, a.Attempt)
	default:
		return string(a.Kind)
	}
}
