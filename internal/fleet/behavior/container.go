package behavior

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Exit codes of containers that are ended from outside: by SIGTERM, by SIGKILL.
const (
	ExitTerminated = 143
	ExitKilled     = 137
)

// ReasonOOMKilled is the reason of a container that wanted more memory than its limit.
const ReasonOOMKilled = "OOMKilled"

// Pod is what one pod does.
type Pod struct {
	// layers are what is said about it, the most important first.
	layers []*compiled
	chance Chance
}

// Container is all that one run of a container does.
type Container struct {
	PullDelay time.Duration
	// PullError is why the image cannot be pulled, PullFailures after how many failures it can, 0 for never. Empty: it can.
	PullError    string
	PullFailures int32

	// Ends tells whether the container ends by itself, after RunFor.
	Ends                    bool
	RunFor                  time.Duration
	ExitCode                int32
	ExitReason, ExitMessage string

	// TerminationDelay is how long it takes to end when it is told to.
	TerminationDelay    time.Duration
	TerminationExitCode int32

	Startup, Readiness, Liveness Window
	CPU, Memory                  Amount
	Logs                         Logs
}

// Window is when a probe fails, from the start of the container. The zero value never does.
type Window struct {
	Fails       bool
	From, Until time.Duration // Until 0 is for good
}

// StartDelay is how long it takes until the first container can start.
func (p *Pod) StartDelay() time.Duration {
	for _, l := range p.layers {
		if l.startDelay != nil {
			return l.startDelay.at(p.chance.of("startDelay", "", 0))
		}
	}
	return 0
}

// Container is what a container does in its run with that number, from 0. One with an end of its own, as an ordinary init container, ends unless something says how
// long it runs.
func (p *Pod) Container(c *corev1.Container, ownEnd bool, attempt int32) Container {
	v := &view{pod: p, container: c, attempt: attempt}
	v.find()
	out := Container{Ends: ownEnd, TerminationExitCode: ExitTerminated}
	v.pull(&out)
	v.end(&out)
	out.TerminationDelay = v.draw("terminationDelay", func(e *entry) *distribution { return e.terminationDelay })
	if e := v.first(func(e *entry) bool { return e.TerminationExitCode != nil }); e != nil {
		out.TerminationExitCode = *e.TerminationExitCode
	}
	out.Startup = v.window("startup", func(e *entry) *window { return e.startup })
	out.Readiness = v.window("readiness", func(e *entry) *window { return e.readiness })
	out.Liveness = v.window("liveness", func(e *entry) *window { return e.liveness })
	if e := v.first(func(e *entry) bool { return e.logs != nil }); e != nil {
		out.Logs = *e.logs
	}
	out.CPU = v.amount(corev1.ResourceCPU, func(e *entry) *curve { return e.cpu })
	out.Memory = v.amount(corev1.ResourceMemory, func(e *entry) *curve { return e.memory })
	v.outOfMemory(&out)
	return out
}

// view is what is said about one run of one container.
type view struct {
	pod       *Pod
	container *corev1.Container
	attempt   int32
	entries   []*entry
}

// find collects the entries that are about the run.
func (v *view) find() {
	command, number := "", int64(-1)
	for _, l := range v.pod.layers {
		for i := range l.entries {
			e := &l.entries[i]
			number++
			if command == "" && len(e.Commands) > 0 {
				command = strings.Join(append(append([]string{}, v.container.Command...), v.container.Args...), " ")
			}
			if anyMatches(e.Names, v.container.Name) && anyMatches(e.Images, v.container.Image) && anyMatches(e.Commands, command) && v.happens(e, number) {
				v.entries = append(v.entries, e)
			}
		}
	}
}

func (v *view) happens(e *entry, number int64) bool {
	if e.Attempts > 0 && v.attempt >= e.Attempts {
		return false
	}
	return e.Percent == nil || 100*v.pod.chance.of("percent", v.container.Name, number<<32|int64(v.attempt)) < float64(*e.Percent)
}

func (v *view) first(has func(*entry) bool) *entry {
	for _, e := range v.entries {
		if has(e) {
			return e
		}
	}
	return nil
}

// draw draws a duration from the first entry that has one.
func (v *view) draw(what string, of func(*entry) *distribution) time.Duration {
	if e := v.first(func(e *entry) bool { return of(e) != nil }); e != nil {
		return v.drawFrom(what, of(e))
	}
	return 0
}

func (v *view) drawFrom(what string, d *distribution) time.Duration {
	return d.at(v.pod.chance.of(what, v.container.Name, int64(v.attempt)))
}

func (v *view) pull(out *Container) {
	out.PullDelay = v.draw("pullDelay", func(e *entry) *distribution { return e.pullDelay })
	if e := v.first(func(e *entry) bool { return e.Pull != nil && e.Pull.Error != "" }); e != nil {
		out.PullError, out.PullFailures = e.Pull.Error, e.Pull.Failures
	}
}

func (v *view) end(out *Container) {
	if e := v.first(func(e *entry) bool { return e.runFor != nil }); e != nil {
		out.Ends, out.RunFor = true, v.drawFrom("runFor", e.runFor)
	}
	if e := v.first(func(e *entry) bool { return e.ExitReason != "" }); e != nil {
		out.Ends, out.ExitReason = true, e.ExitReason
		if e.ExitReason == ReasonOOMKilled {
			out.ExitCode = ExitKilled
		}
	}
	if e := v.first(func(e *entry) bool { return e.ExitCode != nil }); e != nil {
		out.Ends, out.ExitCode = true, *e.ExitCode
	}
	if e := v.first(func(e *entry) bool { return e.ExitMessage != "" }); e != nil {
		out.ExitMessage = e.ExitMessage
	}
}

// outOfMemory makes the container end when it would use more memory than it may.
func (v *view) outOfMemory(out *Container) {
	limit, ok := v.container.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return
	}
	at, reached := out.Memory.Reaches(limit.AsApproximateFloat64())
	if reached && (!out.Ends || at < out.RunFor) {
		out.Ends, out.RunFor, out.ExitCode, out.ExitReason, out.ExitMessage = true, at, ExitKilled, ReasonOOMKilled, ""
	}
}

func (v *view) window(what string, of func(*entry) *window) Window {
	e := v.first(func(e *entry) bool { return of(e) != nil })
	if e == nil {
		return Window{}
	}
	w := of(e)
	out := Window{Fails: true, From: v.drawFrom(what+"After", w.after)}
	if w.length != nil {
		out.Until = out.From + v.drawFrom(what+"For", w.length)
		out.Fails = out.Until > out.From
	}
	return out
}

func (v *view) amount(name corev1.ResourceName, of func(*entry) *curve) Amount {
	request := v.container.Resources.Requests[name]
	out := Amount{request: request.AsApproximateFloat64()}
	if e := v.first(func(e *entry) bool { return of(e) != nil }); e != nil {
		chance, container := v.pod.chance, v.container.Name
		out.curve = of(e)
		out.noise = func(step int64) float64 { return chance.of("noise "+string(name), container, step) }
	}
	return out
}
