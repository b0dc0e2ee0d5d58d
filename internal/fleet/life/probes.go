package life

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// probes is what the probes of one run will find, as times. Probes take place at initialDelaySeconds after the start and every periodSeconds from then on; they take no
// time themselves.
type probes struct {
	// started is when the container counts as started, zero for never.
	started time.Time
	// turns are when its readiness changes, from not ready to ready first.
	turns []time.Time
	// kill is when a probe has the container killed, zero for never; killer is the probe and killedBy what it found.
	kill     time.Time
	killer   *corev1.Probe
	killedBy string
}

// schedule is when a probe takes place, and when it fails.
type schedule struct {
	first, period time.Duration
	// failures and successes in a row have an effect.
	failures, successes int64
	window              behavior.Window
}

func scheduleOf(p *corev1.Probe, w behavior.Window) schedule {
	return schedule{
		first: time.Duration(p.InitialDelaySeconds) * time.Second, period: max(time.Second, time.Duration(p.PeriodSeconds)*time.Second),
		failures: max(1, int64(p.FailureThreshold)), successes: max(1, int64(p.SuccessThreshold)), window: w,
	}
}

// from is the first probe that is not before d.
func (s schedule) from(d time.Duration) time.Duration {
	if d <= s.first {
		return s.first
	}
	return s.first + (d-s.first+s.period-1)/s.period*s.period
}

// up is when the probe has succeeded often enough, d being the earliest; it may fail before its window opens or after it closed.
func (s schedule) up(d time.Duration) (time.Duration, bool) {
	done := s.from(d) + time.Duration(s.successes-1)*s.period
	w := s.window
	if !w.Fails || done < w.From {
		return done, true
	}
	if w.Until == 0 {
		return 0, false
	}
	return s.from(max(d, w.Until)) + time.Duration(s.successes-1)*s.period, true
}

// down is when the probe has failed often enough, d being the earliest.
func (s schedule) down(d time.Duration) (time.Duration, bool) {
	w := s.window
	if !w.Fails {
		return 0, false
	}
	done := s.from(max(d, w.From)) + time.Duration(s.failures-1)*s.period
	return done, w.Until == 0 || done < w.Until
}

func planProbes(c *corev1.Container, does *behavior.Container, start time.Time) probes {
	out := probes{}
	startedAfter, starts := time.Duration(0), true
	if c.StartupProbe != nil {
		s := scheduleOf(c.StartupProbe, does.Startup)
		startedAfter, starts = s.up(0)
		if down, fails := s.down(0); fails && (!starts || down < startedAfter) {
			starts = false
			out.killedBecause(start.Add(down), c.StartupProbe, "Startup", c.Name)
		}
	}
	if !starts {
		return out
	}
	out.started = start.Add(startedAfter)
	if c.LivenessProbe != nil {
		if down, fails := scheduleOf(c.LivenessProbe, does.Liveness).down(startedAfter); fails {
			out.killedBecause(start.Add(down), c.LivenessProbe, "Liveness", c.Name)
		}
	}
	out.turns = readiness(c.ReadinessProbe, does.Readiness, start, startedAfter)
	return out
}

func (p *probes) killedBecause(at time.Time, probe *corev1.Probe, what, container string) {
	p.kill, p.killer = at, probe
	p.killedBy = fmt.Sprintf("%s probe failed: container %s is told to fail by its simulated behavior", what, container)
}

// readiness is when readiness changes.
func readiness(probe *corev1.Probe, w behavior.Window, start time.Time, startedAfter time.Duration) []time.Time {
	if probe == nil {
		return []time.Time{start.Add(startedAfter)}
	}
	s := scheduleOf(probe, w)
	up, ok := s.up(startedAfter)
	if !ok {
		return nil
	}
	turns := []time.Time{start.Add(up)}
	if down, fails := s.down(up); fails && down > up {
		turns = append(turns, start.Add(down))
		if again, ok := s.up(max(down, w.From)); ok {
			turns = append(turns, start.Add(again))
		}
	}
	return turns
}

// isStarted and isReady are what the probes found by now.
func (p *probes) isStarted(now time.Time) bool { return !p.started.IsZero() && !p.started.After(now) }

func (p *probes) isReady(now time.Time) bool {
	turned := 0
	for _, t := range p.turns {
		if !t.After(now) {
			turned++
		}
	}
	return turned%2 == 1
}

// next is when something that is reported changes.
func (p *probes) next(now time.Time) (time.Time, bool) {
	var coming []time.Time
	for _, t := range append([]time.Time{p.started}, p.turns...) {
		if t.After(now) {
			coming = append(coming, t)
		}
	}
	if len(coming) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(coming, time.Time.Compare), true
}
