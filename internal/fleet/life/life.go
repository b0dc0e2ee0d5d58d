// Package life is the life of one simulated pod: from what the API has of it and from what it does (package behavior) to the status that its node would report. It
// does nothing by itself and reads no clock:
//
//	New (a new pod, or one that another process has brought so far)
//	Update ◄── the pod as the API has it now
//	Step(now) ──► what has happened by now; when to look again
//	Status(now) ──► what the node reports
//
// Everything that happens has its own time, however late Step is called. How a container's run ends is planned when it starts, and follows from its start time and from
// draws that can be repeated: so a pod that is adopted ends when it would have ended.
package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// Host is what a pod has from its node.
type Host interface {
	// Address is the node's own address.
	Address() string
	// Assign gives the pod an address of its own.
	Assign() string
	// HasImage reports whether the node has an image.
	HasImage(image string) bool
	// Starts reports whether containers can start.
	Starts() bool
}

// Event is something that a person should know.
type Event struct{ Type, Reason, Message string }

// Pod is one pod.
type Pod struct {
	api      *corev1.Pod
	behavior *behavior.Pod
	host     Host

	// since is when the node took the pod, sandbox when its first container can start.
	since, sandbox time.Time
	ip             string
	// containers are all of them: init containers, ordinary ones, ephemeral ones, each in their order.
	containers []*container
	ending     *ending
	ended      bool
	// final is the status of a pod that had ended before it was adopted.
	final *corev1.PodStatus

	next   time.Time
	events []Event
}

// New takes a pod over at now: a new one, or one whose status tells how far it is.
func New(api *corev1.Pod, does *behavior.Pod, host Host, now time.Time) *Pod {
	p := &Pod{api: api, behavior: does, host: host, since: now}
	if api.Status.StartTime != nil {
		p.since = api.Status.StartTime.Time
	}
	p.sandbox = p.since.Add(does.StartDelay())
	if !api.Spec.HostNetwork {
		p.ip = api.Status.PodIP
	}
	if terminal(api.Status.Phase) {
		p.final, p.ended = api.Status.DeepCopy(), true
	}
	p.list()
	for _, c := range p.containers {
		c.adopt(p)
	}
	return p
}

// Update tells the pod as the API has it now.
func (p *Pod) Update(api *corev1.Pod) {
	p.api = api
	p.list()
}

// Behave tells the pod what it does from now on. A run that has begun goes on as it was planned.
func (p *Pod) Behave(does *behavior.Pod) { p.behavior = does }

// list brings the containers up to date: specs may change, and ephemeral containers be added.
func (p *Pod) list() {
	spec := &p.api.Spec
	old := p.containers
	p.containers = make([]*container, 0, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	for i := range spec.InitContainers {
		kind := kindInit
		if isSidecar(&spec.InitContainers[i]) {
			kind = kindSidecar
		}
		p.add(old, &spec.InitContainers[i], kind)
	}
	for i := range spec.Containers {
		p.add(old, &spec.Containers[i], kindOrdinary)
	}
	for i := range spec.EphemeralContainers {
		p.add(old, (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), kindEphemeral)
	}
}

func (p *Pod) add(old []*container, spec *corev1.Container, kind kind) {
	for _, c := range old {
		if c.spec.Name == spec.Name {
			c.spec = spec
			p.containers = append(p.containers, c)
			return
		}
	}
	p.containers = append(p.containers, &container{spec: spec, kind: kind})
}

// terminal phases are those that a pod does not leave.
func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// API is the pod as it was told last.
func (p *Pod) API() *corev1.Pod { return p.api }

// Ended reports whether nothing of the pod runs any more, nor will.
func (p *Pod) Ended() bool { return p.ended }

// IP is the address that the pod was given, empty when it has none of its own.
func (p *Pod) IP() string { return p.ip }

// Events returns and forgets what has happened that a person should know.
func (p *Pod) Events() []Event {
	events := p.events
	p.events = nil
	return events
}

func (p *Pod) tell(reason, message string) {
	p.events = append(p.events, Event{corev1.EventTypeWarning, reason, message})
}

// Step lets everything happen that happens until now. It returns when there is something to do again, the zero time when only an Update can bring that about.
func (p *Pod) Step(now time.Time) time.Time {
	for p.pass(now) {
	}
	return p.next
}

// pass lets each container do one thing. It reports whether one did.
func (p *Pod) pass(now time.Time) bool {
	p.next = time.Time{}
	if p.ended {
		return false
	}
	p.noteEnding(now)
	if p.ending != nil {
		return p.end(now)
	}
	if !p.due(p.sandbox, now) {
		return false
	}
	if !p.host.Starts() && p.ip == "" && !p.begun() {
		return false
	}
	if p.ip == "" && !p.api.Spec.HostNetwork {
		p.ip = p.host.Assign()
	}
	changed := false
	for _, c := range p.containers {
		changed = c.step(p, now) || changed
	}
	return changed || p.noteEnd()
}

func (p *Pod) begun() bool {
	for _, c := range p.containers {
		if c.id != "" {
			return true
		}
	}
	return false
}

// due reports whether a time has come; if not, it is one to look again.
func (p *Pod) due(at, now time.Time) bool {
	if !at.After(now) {
		return true
	}
	p.await(at)
	return false
}

func (p *Pod) await(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}
