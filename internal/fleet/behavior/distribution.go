package behavior

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// maxDuration bounds what is drawn: distributions without an end would overflow.
const maxDuration = 100 * 365 * 24 * time.Hour

// distribution is a duration, or durations with their probabilities.
type distribution struct {
	family string
	// a and b are its parameters. Durations are in nanoseconds.
	a, b float64
}

// families are the distributions by name: which of their parameters are durations, and the duration of a quantile u, from 0 to 1.
var families = map[string]struct {
	form     string
	isTime   []bool
	quantile func(a, b, u float64) float64
}{
	"uniform":     {"uniform(10s,60s)", []bool{true, true}, func(a, b, u float64) float64 { return a + (b-a)*u }},
	"normal":      {"normal(30s,5s)", []bool{true, true}, func(a, b, u float64) float64 { return a + b*normalQuantile(u) }},
	"exponential": {"exponential(30s)", []bool{true}, func(a, _, u float64) float64 { return -a * math.Log1p(-u) }},
	"lognormal":   {"lognormal(30s,0.5)", []bool{true, false}, func(a, b, u float64) float64 { return a * math.Exp(b*normalQuantile(u)) }},
	"weibull":     {"weibull(30s,1.5)", []bool{true, false}, func(a, b, u float64) float64 { return a * math.Pow(-math.Log1p(-u), 1/b) }},
}

func normalQuantile(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// parseDistribution reads a Duration. An empty one is nil.
func parseDistribution(text v1alpha1.Duration) (*distribution, error) {
	s := strings.TrimSpace(string(text))
	if s == "" {
		return nil, nil
	}
	name, inner, isFunction := strings.Cut(s, "(")
	if !isFunction {
		d, err := parseDuration(s)
		return &distribution{a: float64(d)}, err
	}
	family, known := families[strings.TrimSpace(name)]
	if !known {
		return nil, fmt.Errorf("%q: no such distribution; there are uniform, normal, exponential, lognormal and weibull", s)
	}
	inner, closed := strings.CutSuffix(inner, ")")
	parts := strings.Split(inner, ",")
	if !closed || len(parts) != len(family.isTime) {
		return nil, fmt.Errorf("%q: must have the form of %s", s, family.form)
	}
	out := &distribution{family: strings.TrimSpace(name)}
	for i, into := range []*float64{&out.a, &out.b}[:len(parts)] {
		var err error
		if *into, err = parameter(strings.TrimSpace(parts[i]), family.isTime[i]); err != nil {
			return nil, fmt.Errorf("%q: %w; the form is that of %s", s, err, family.form)
		}
	}
	if out.family == "uniform" && out.b < out.a {
		return nil, fmt.Errorf("%q: the second duration must not be less than the first", s)
	}
	return out, nil
}

func parameter(text string, isTime bool) (float64, error) {
	if isTime {
		d, err := parseDuration(text)
		return float64(d), err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q must be a number above 0", text)
	}
	return f, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration, as 1m30s is", text)
	}
	if d < 0 || d > maxDuration {
		return 0, fmt.Errorf("%s must be from 0 to %s", text, maxDuration)
	}
	return d, nil
}

// at is the duration of a quantile, from 0 to 1. It is never negative.
func (d *distribution) at(u float64) time.Duration {
	if d == nil {
		return 0
	}
	if d.family == "" {
		return time.Duration(d.a)
	}
	return time.Duration(max(0, min(families[d.family].quantile(d.a, d.b, u), float64(maxDuration))))
}
