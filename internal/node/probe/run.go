package probe

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Defaults of a probe's fields, for manifests that did not pass through the API server's defaulting.
const (
	defaultPeriod    = 10 * time.Second
	defaultThreshold = 3
)

// Observe takes each outcome: what the request gave, and whether that changed the verdict after the thresholds.
type Observe func(result Result, output string, verdict Verdict)

// Verdict is what a row of outcomes means.
type Verdict int

// The verdicts. Until a threshold is reached there is no change.
const (
	NoChange Verdict = iota
	Good
	Bad
)

// Run asks again and again, until ctx ends or observe has been told as often as it wants: initialDelaySeconds after the container's start,
// then each periodSeconds. successThreshold successes in a row are Good, failureThreshold failures in a row are Bad; what was Good or Bad
// already is not said again. A container that is found running (the agent was restarted) is asked at once.
func (p *Prober) Run(ctx context.Context, spec *v1.Probe, t Target, observe Observe) {
	period := defaultPeriod
	if spec.PeriodSeconds > 0 {
		period = time.Duration(spec.PeriodSeconds) * time.Second
	}
	first := t.StartedAt.Add(time.Duration(spec.InitialDelaySeconds) * time.Second)
	timer := p.Clock.NewTimer(max(0, first.Sub(p.Clock.Now())))
	defer timer.Stop()
	row := &row{success: max(1, int(spec.SuccessThreshold)), failure: int(spec.FailureThreshold)}
	if row.failure == 0 {
		row.failure = defaultThreshold
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		begin := p.Clock.Now()
		result, output := p.Once(ctx, spec, t)
		if ctx.Err() != nil {
			return
		}
		observe(result, output, row.add(result))
		timer.Reset(max(0, period-p.Clock.Since(begin)))
	}
}

// row counts equal outcomes in a row.
type row struct {
	success, failure int
	last             Result
	count            int
	said             Verdict
}

func (r *row) add(result Result) Verdict {
	if result == Errored {
		return NoChange
	}
	if result == Warning {
		result = Success
	}
	if r.count == 0 || r.last != result {
		r.last, r.count = result, 0
	}
	r.count++
	verdict := NoChange
	switch {
	case result == Success && r.count >= r.success:
		verdict = Good
	case result == Failure && r.count >= r.failure:
		verdict = Bad
	}
	if verdict == r.said {
		return NoChange
	}
	if verdict != NoChange {
		r.said = verdict
	}
	return verdict
}
