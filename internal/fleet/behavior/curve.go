package behavior

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// curve is an amount over time. Amounts are in units (cores, bytes), or parts of what the container requests.
type curve struct {
	points []point
	repeat bool
	noise  float64
}

type point struct {
	at       float64 // seconds
	value    float64
	relative bool
}

// noiseStep is how often the noise changes.
const noiseStep = 10 * time.Second

func parseCurve(c *v1alpha1.Curve) (*curve, error) {
	if c == nil {
		return nil, nil
	}
	if len(c.Points) == 0 {
		return nil, fmt.Errorf("points: there must be at least one")
	}
	if c.NoisePercent < 0 || c.NoisePercent > 100 {
		return nil, fmt.Errorf("noisePercent: %d must be from 0 to 100", c.NoisePercent)
	}
	out := &curve{repeat: c.Repeat, noise: float64(c.NoisePercent) / 100}
	for i, p := range c.Points {
		parsed, err := parsePoint(p)
		if err == nil && (parsed.at < 0 || i > 0 && parsed.at <= out.points[i-1].at) {
			err = fmt.Errorf("at: %s must be after the point before", p.At.Duration)
		}
		if err != nil {
			return nil, fmt.Errorf("points[%d].%w", i, err)
		}
		out.points = append(out.points, parsed)
	}
	if out.repeat && out.period() == 0 {
		return nil, fmt.Errorf("repeat: needs a last point after 0s")
	}
	return out, nil
}

func parsePoint(p v1alpha1.Point) (point, error) {
	out := point{at: p.At.Seconds()}
	if text, isPercent := strings.CutSuffix(p.Value, "%"); isPercent {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f <= 1e6) {
			return out, fmt.Errorf("value: %q is no percentage", p.Value)
		}
		out.value, out.relative = f/100, true
		return out, nil
	}
	q, err := resource.ParseQuantity(p.Value)
	if err != nil || q.Sign() < 0 {
		return out, fmt.Errorf("value: %q is neither an amount, as 250m or 64Mi, nor a percentage", p.Value)
	}
	out.value = q.AsApproximateFloat64()
	return out, nil
}

func (c *curve) period() float64 { return c.points[len(c.points)-1].at }

// Amount is what one container uses of one resource over time.
type Amount struct {
	curve *curve
	// request is what percentages are of, and the amount when there is no curve.
	request float64
	// noise draws how much the amount differs from the curve in a step.
	noise func(step int64) float64
}

// Own reports whether the amount differs from the request.
func (a Amount) Own() bool { return a.curve != nil }

// At is the amount so long after the start.
func (a Amount) At(since time.Duration) float64 {
	if a.curve == nil {
		return a.request
	}
	v := a.line(since.Seconds())
	if a.curve.noise > 0 {
		v *= 1 + a.curve.noise*(2*a.noise(int64(since/noiseStep))-1)
	}
	return max(0, v)
}

// Used is the amount summed up over the seconds from the start: core-seconds, for CPU. Noise is left out, for it sums up to nothing.
func (a Amount) Used(since time.Duration) float64 {
	t := since.Seconds()
	if a.curve == nil {
		return a.request * t
	}
	period := a.curve.period()
	if !a.curve.repeat || t <= period {
		return a.area(t)
	}
	rounds := float64(int64(t / period))
	return rounds*a.area(period) + a.area(t-rounds*period)
}

// Reaches is when the amount first goes above a bound, counted from the start. Noise is left out.
func (a Amount) Reaches(bound float64) (time.Duration, bool) {
	if a.curve == nil {
		return 0, false // what is requested is within limits
	}
	points := a.curve.points
	if a.value(0) > bound {
		return 0, true
	}
	for i := 1; i < len(points); i++ {
		low, high := a.value(i-1), a.value(i)
		if high > bound {
			t := points[i-1].at + (bound-low)/(high-low)*(points[i].at-points[i-1].at)
			return time.Duration(t * float64(time.Second)), true
		}
	}
	return 0, false
}

func (a Amount) value(i int) float64 {
	if p := a.curve.points[i]; p.relative {
		return p.value * a.request
	} else {
		return p.value
	}
}

// line is the curve without noise, t seconds after the start.
func (a Amount) line(t float64) float64 {
	points := a.curve.points
	if period := a.curve.period(); a.curve.repeat && t > period {
		t -= float64(int64(t/period)) * period
	}
	if t <= points[0].at {
		return a.value(0)
	}
	for i := 1; i < len(points); i++ {
		if t < points[i].at {
			low, high := a.value(i-1), a.value(i)
			return low + (high-low)*(t-points[i-1].at)/(points[i].at-points[i-1].at)
		}
	}
	return a.value(len(points) - 1)
}

// area is the sum over the first t seconds of one round.
func (a Amount) area(t float64) float64 {
	points := a.curve.points
	sum := a.value(0) * min(t, points[0].at)
	for i := 1; i < len(points) && t > points[i-1].at; i++ {
		end := min(t, points[i].at)
		low, high := a.value(i-1), a.value(i)
		at := low + (high-low)*(end-points[i-1].at)/(points[i].at-points[i-1].at)
		sum += (low + at) / 2 * (end - points[i-1].at)
	}
	last := len(points) - 1
	return sum + a.value(last)*max(0, t-points[last].at)
}
