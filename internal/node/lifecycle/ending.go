package lifecycle

import (
	"fmt"
	"time"
)

// minGrace is the least time that a container gets between TERM and KILL, whatever was asked for.
const minGrace = 1 * time.Second

const defaultGrace = 30 * time.Second

// grace is the pod's own termination grace period.
func (d *decider) grace() time.Duration {
	if s := d.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return max(minGrace, time.Duration(*s)*time.Second)
	}
	return defaultGrace
}

// endingGrace is the time that is left to the pod's containers, of what the deletion or the ending gives them.
func (d *decider) endingGrace() time.Duration {
	grace := d.grace()
	if d.mem.Ending != nil && d.mem.Ending.Grace != nil {
		grace = *d.mem.Ending.Grace
	}
	if s := d.pod.DeletionGracePeriodSeconds; d.pod.DeletionTimestamp != nil && s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return max(minGrace, grace-d.Now.Sub(d.mem.EndingSince))
}

// end stops what still runs: ordinary containers first and at once, then the sidecars in reverse order, each after the one that was
// started after it, then the sandbox.
func (d *decider) end() {
	d.plan.Stage = StageEnding
	if d.mem.EndingSince.IsZero() {
		d.mem.EndingSince = d.Now
	}
	if d.Busy.Start != "" || d.Busy.Sandbox {
		return // a start is cut short by the caller; what it leaves behind is observed and stopped
	}
	if d.endContainers() {
		return
	}
	waiting := false
	for _, s := range d.Observed.Sandboxes {
		if s.Ready {
			d.stopSandbox(s.ID)
			waiting = true
		}
	}
	if !waiting && d.Busy.idle() {
		d.plan.Stage = StageEnded
	}
}

// endContainers reports whether containers still have to stop.
func (d *decider) endContainers() bool {
	sidecars := map[string]int{}
	for i := range d.pod.Spec.InitContainers {
		if c := &d.pod.Spec.InitContainers[i]; IsSidecar(c) {
			sidecars[c.Name] = i
		}
	}
	others, lastSidecar := false, -1
	for i := range d.Observed.Containers {
		c := &d.Observed.Containers[i]
		if !c.alive() {
			continue
		}
		if order, ok := sidecars[c.Name]; ok {
			lastSidecar = max(lastSidecar, order)
			continue
		}
		others = true
		d.stop(c, d.stopGrace(c.ID), fmt.Sprintf("Stopping container %s", c.Name))
	}
	if others || lastSidecar < 0 {
		return others
	}
	name := d.pod.Spec.InitContainers[lastSidecar].Name
	for i := range d.Observed.Containers {
		if c := &d.Observed.Containers[i]; c.alive() && c.Name == name {
			d.stop(c, d.stopGrace(c.ID), fmt.Sprintf("Stopping container %s", c.Name))
		}
	}
	return true
}

// stopGrace is the remaining grace, but a stop that is under way is not ordered again only because time went by: only when the whole
// grace was cut to less than what that stop was given.
func (d *decider) stopGrace(id string) time.Duration {
	left := d.endingGrace()
	running, busy := d.Busy.Stops[id]
	if !busy {
		return left
	}
	if full := left + d.Now.Sub(d.mem.EndingSince); full < running {
		return left
	}
	return running
}
