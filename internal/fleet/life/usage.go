package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// ContainerUsage is what a running container uses.
type ContainerUsage struct {
	Name    string
	Started time.Time
	// CPU is in cores, CPUTime in core-seconds since the start, Memory in bytes, as is Requested, which is the memory that the container asked for.
	CPU, CPUTime, Memory, Requested float64
}

// Usage is what the containers use now that run.
func (p *Pod) Usage(now time.Time) []ContainerUsage {
	var out []ContainerUsage
	for _, c := range p.containers {
		if c.state != running {
			continue
		}
		since := now.Sub(c.started)
		requested := c.spec.Resources.Requests[corev1.ResourceMemory]
		out = append(out, ContainerUsage{
			Name: c.spec.Name, Started: c.started, CPU: c.does.CPU.At(since), CPUTime: c.does.CPU.Used(since),
			Memory: c.does.Memory.At(since), Requested: requested.AsApproximateFloat64(),
		})
	}
	return out
}

// Log is what one run of a container writes: from its start to its end, which is zero while it runs.
type Log struct {
	Lines        behavior.Logs
	Start, Ended time.Time
}

// Log is what a container wrote in its last run, or in the one before. ok is false when there was no such run, and reason then tells what the container waits for.
func (p *Pod) Log(container string, previous bool) (log Log, reason string, ok bool) {
	for _, c := range p.containers {
		if c.spec.Name == container {
			return c.log(p, previous)
		}
	}
	return log, "", false
}

func (c *container) log(p *Pod, previous bool) (log Log, reason string, ok bool) {
	if c.id == "" {
		return log, c.waits(p).Reason, false
	}
	// A container that waits for its next run has its last one as the one before.
	if previous && !(c.state == exited && !c.restart.IsZero()) {
		if c.former == nil {
			return log, "", false
		}
		does := p.behavior.Container(c.spec, c.kind == kindInit, c.attempt-1)
		return Log{Lines: does.Logs, Start: c.former.StartedAt.Time, Ended: c.former.FinishedAt.Time}, "", true
	}
	log = Log{Lines: c.does.Logs, Start: c.started}
	if c.state == exited {
		log.Ended = c.end.at
	}
	return log, "", true
}

// OwnMemory reports whether a container may use another amount of memory than it requested.
func (p *Pod) OwnMemory() bool {
	for _, c := range p.containers {
		if c.state == running && c.does.Memory.Own() {
			return true
		}
	}
	return false
}
