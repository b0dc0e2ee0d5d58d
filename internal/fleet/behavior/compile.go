package behavior

import (
	"fmt"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// compiled is a Behavior with all its texts understood.
type compiled struct {
	startDelay *distribution
	entries    []entry
}

// entry is a ContainerBehavior with all its texts understood.
type entry struct {
	*v1alpha1.ContainerBehavior
	pullDelay, runFor, terminationDelay *distribution
	startup, readiness, liveness        *window
	cpu, memory                         *curve
	logs                                *Logs
}

// window is when a probe fails. Without an end it fails for good.
type window struct{ after, length *distribution }

// reader remembers the first error of many, with the field that it is in.
type reader struct{ err error }

func (r *reader) fail(field string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", field, err)
	}
}

func (r *reader) duration(field string, text v1alpha1.Duration) *distribution {
	d, err := parseDistribution(text)
	r.fail(field, err)
	return d
}

func (r *reader) window(field string, p *v1alpha1.Probe) *window {
	if p == nil {
		return nil
	}
	return &window{r.duration(field+".failAfter", p.FailAfter), r.duration(field+".failFor", p.FailFor)}
}

func (r *reader) curve(field string, c *v1alpha1.Curve) *curve {
	out, err := parseCurve(c)
	r.fail(field, err)
	return out
}

// compile reads a behavior; path is where it stands.
func compile(path string, b *v1alpha1.Behavior) (*compiled, error) {
	r := &reader{}
	out := &compiled{startDelay: r.duration(path+"startDelay", b.StartDelay)}
	for i := range b.Containers {
		out.entries = append(out.entries, r.entry(fmt.Sprintf("%scontainers[%d].", path, i), &b.Containers[i]))
	}
	return out, r.err
}

func (r *reader) entry(path string, c *v1alpha1.ContainerBehavior) entry {
	e := entry{
		ContainerBehavior: c, runFor: r.duration(path+"runFor", c.RunFor),
		terminationDelay: r.duration(path+"terminationDelay", c.TerminationDelay),
	}
	r.number(path+"attempts", c.Attempts, 0, 1<<30)
	if c.Percent != nil {
		r.number(path+"percent", *c.Percent, 0, 100)
	}
	for field, code := range map[string]*int32{"exitCode": c.ExitCode, "terminationExitCode": c.TerminationExitCode} {
		if code != nil {
			r.number(path+field, *code, 0, 255)
		}
	}
	if c.Pull != nil {
		e.pullDelay = r.duration(path+"pull.delay", c.Pull.Delay)
		r.number(path+"pull.failures", c.Pull.Failures, 0, 1<<30)
		if c.Pull.Failures > 0 && c.Pull.Error == "" {
			r.fail(path+"pull.error", fmt.Errorf("must say why the pull fails %d times", c.Pull.Failures))
		}
	}
	if p := c.Probes; p != nil {
		e.startup, e.readiness = r.window(path+"probes.startup", p.Startup), r.window(path+"probes.readiness", p.Readiness)
		e.liveness = r.window(path+"probes.liveness", p.Liveness)
	}
	if u := c.Usage; u != nil {
		e.cpu, e.memory = r.curve(path+"usage.cpu", u.CPU), r.curve(path+"usage.memory", u.Memory)
	}
	logs, err := parseLogs(c.Logs)
	r.fail(path+"logs", err)
	e.logs = logs
	return e
}

func (r *reader) number(field string, n, low, high int32) {
	if n < low || n > high {
		r.fail(field, fmt.Errorf("%d must be from %d to %d", n, low, high))
	}
}
