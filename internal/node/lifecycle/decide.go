package lifecycle

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Decide says what the pod needs next. It updates in.Memory and nothing else.
func Decide(in Input) Plan {
	d := &decider{Input: in, pod: in.Pod, mem: in.Memory}
	if d.mem.StartTime.IsZero() {
		d.mem.StartTime = startTime(in.Pod, in.Now)
	}
	d.checkDeadline()
	if d.mustEnd() {
		d.end()
	} else {
		d.run()
	}
	d.plan.Status = d.status()
	return d.plan
}

type decider struct {
	Input
	pod  *v1.Pod
	mem  *Memory
	plan Plan
}

func startTime(pod *v1.Pod, now time.Time) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return now
}

// mustEnd tells whether the pod is on its way out: deleted, ended by the agent, or done.
func (d *decider) mustEnd() bool {
	if d.Gone || d.pod.DeletionTimestamp != nil || d.mem.Ending != nil {
		return true
	}
	phase := d.pod.Status.Phase
	if phase != v1.PodSucceeded && phase != v1.PodFailed {
		statuses := d.containerStatuses()
		phase = d.phase(statuses, false)
	}
	if phase == v1.PodSucceeded || phase == v1.PodFailed {
		d.mem.Ending = &Ending{}
		return true
	}
	return false
}

// checkDeadline ends a pod that was active for longer than its activeDeadlineSeconds.
func (d *decider) checkDeadline() {
	seconds := d.pod.Spec.ActiveDeadlineSeconds
	if seconds == nil || d.mem.Ending != nil || d.pod.DeletionTimestamp != nil {
		return
	}
	end := d.mem.StartTime.Add(time.Duration(*seconds) * time.Second)
	if d.Now.Before(end) {
		d.plan.wakeAt(end)
		return
	}
	const message = "Pod was active on the node longer than the specified deadline"
	d.mem.Ending = &Ending{Phase: v1.PodFailed, Reason: "DeadlineExceeded", Message: message}
	d.event(v1.EventTypeNormal, "DeadlineExceeded", "", message)
}

// run brings up what is missing: the sandbox, then the containers.
func (d *decider) run() {
	sandbox := d.Observed.current()
	for i := range d.Observed.Sandboxes {
		if s := &d.Observed.Sandboxes[i]; s.Ready && s != sandbox {
			d.stopSandbox(s.ID)
		}
	}
	if sandbox == nil || !sandbox.Ready {
		d.renewSandbox(sandbox)
		return
	}
	d.runContainers(sandbox)
	d.collectDead()
}

// renewSandbox makes the first sandbox of a pod, or the next one when the last is dead. Containers that outlived their sandbox go first.
func (d *decider) renewSandbox(dead *Sandbox) {
	waiting := false
	for i := range d.Observed.Containers {
		if c := &d.Observed.Containers[i]; c.alive() {
			d.stop(c, d.grace(), "Pod sandbox changed, it will be killed and re-created.")
			waiting = true
		}
	}
	if waiting || d.Busy.Sandbox || d.Busy.Start != "" {
		return
	}
	if d.Now.Before(d.mem.Sandbox.At) {
		d.plan.wakeAt(d.mem.Sandbox.At)
		return
	}
	action := Action{Kind: CreateSandbox}
	if dead != nil {
		action.ID, action.Attempt = dead.ID, int32(dead.Attempt)+1
		d.event(v1.EventTypeNormal, "SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created.")
	}
	d.act(action)
}

// collectDead removes finished attempts but the last two of each container, which logs --previous and lastState need, and containers
// that were made but never started because the agent died in between.
// Dead sandboxes go when nothing is left in them.
func (d *decider) collectDead() {
	for i := range d.Observed.Containers {
		c := &d.Observed.Containers[i]
		latest := d.Observed.latest(c.Name)
		old := c.State == Exited && latest.ID != c.ID && d.Observed.previous(latest).ID != c.ID
		stale := c.State == Created && d.Busy.Start != c.Name
		if _, busy := d.Busy.Stops[c.ID]; !busy && (old || stale) {
			d.act(Action{Kind: RemoveContainer, ID: c.ID, Container: c.Name, Attempt: c.Attempt})
		}
	}
	current := d.Observed.current()
	for i := range d.Observed.Sandboxes {
		s := &d.Observed.Sandboxes[i]
		if _, busy := d.Busy.Stops[s.ID]; s != current && !s.Ready && !busy && !d.inhabited(s) {
			d.act(Action{Kind: RemoveSandbox, ID: s.ID})
		}
	}
}

func (d *decider) inhabited(s *Sandbox) bool {
	for i := range d.Observed.Containers {
		if d.Observed.Containers[i].SandboxID == s.ID {
			return true
		}
	}
	return false
}

func (d *decider) act(a Action) { d.plan.Actions = append(d.plan.Actions, a) }

func (d *decider) event(eventType, reason, container, message string) {
	d.plan.Events = append(d.plan.Events, Event{Type: eventType, Reason: reason, Container: container, Message: message})
}

// stop orders a container to be stopped, unless it is being stopped already with as little grace.
func (d *decider) stop(c *Container, grace time.Duration, message string) {
	if running, busy := d.Busy.Stops[c.ID]; busy && running <= grace {
		return
	}
	d.act(Action{Kind: StopContainer, ID: c.ID, Container: c.Name, Grace: grace, Message: message})
}

func (d *decider) stopSandbox(id string) {
	if _, busy := d.Busy.Stops[id]; !busy {
		d.act(Action{Kind: StopSandbox, ID: id})
	}
}

func podRef(pod *v1.Pod) string { return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID) }
