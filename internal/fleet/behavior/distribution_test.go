package behavior

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

func TestDistributions(t *testing.T) {
	for _, test := range []struct {
		text   v1alpha1.Duration
		u      float64
		want   time.Duration
		errors string
	}{
		{text: "90s", u: 0.9, want: 90 * time.Second},
		{text: " 1m30s ", u: 0.1, want: 90 * time.Second},
		{text: "uniform(10s, 60s)", u: 0.5, want: 35 * time.Second},
		{text: "normal(30s,5s)", u: 0.5, want: 30 * time.Second},
		{text: "normal(1s,100s)", u: 0.01, want: 0},
		{text: "exponential(10s)", u: 1 - 1/math.E, want: 10 * time.Second},
		{text: "lognormal(30s,0.5)", u: 0.5, want: 30 * time.Second},
		{text: "weibull(30s,1.5)", u: 1 - 1/math.E, want: 30 * time.Second},
		{text: "exponential(876000h)", u: 0.9999, want: maxDuration},
		{text: "soon", errors: "is no duration"},
		{text: "-1s", errors: "must be from 0"},
		{text: "uniform(60s,10s)", errors: "must not be less"},
		{text: "uniform(60s)", errors: "the form of uniform(10s,60s)"},
		{text: "uniform(1s,2s", errors: "the form of"},
		{text: "gauss(1s)", errors: "no such distribution"},
		{text: "weibull(30s,0)", errors: "a number above 0"},
		{text: "weibull(30s,NaN)", errors: "a number above 0"},
	} {
		d, err := parseDistribution(test.text)
		if test.errors != "" {
			if err == nil || !strings.Contains(err.Error(), test.errors) {
				t.Errorf("%s: %v, want %q", test.text, err, test.errors)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		} else if got := d.at(test.u); got.Round(time.Millisecond) != test.want {
			t.Errorf("%s at %g: %s, want %s", test.text, test.u, got, test.want)
		}
	}
	if d, err := parseDistribution(""); d != nil || err != nil || d.at(0.5) != 0 {
		t.Errorf("an empty one is %v, %v", d, err)
	}
}

// TestQuantilesRise: the duration of a greater quantile is never shorter, and none is negative.
func TestQuantilesRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]v1alpha1.Duration{"uniform(1s,9s)", "normal(5s,20s)", "exponential(3s)", "lognormal(3s,2.5)", "weibull(3s,0.3)"}).Draw(t, "text")
		d, err := parseDistribution(text)
		if err != nil {
			t.Fatal(err)
		}
		u, v := rapid.Float64Range(0.0001, 0.9999).Draw(t, "u"), rapid.Float64Range(0.0001, 0.9999).Draw(t, "v")
		low, high := d.at(min(u, v)), d.at(max(u, v))
		if low < 0 || high < low {
			t.Fatalf("%s: %s at %g, %s at %g", text, low, min(u, v), high, max(u, v))
		}
	})
}

func FuzzParseDistribution(f *testing.F) {
	for _, text := range []string{"1s", "uniform(1s,2s)", "weibull(1s,1e308)", "normal(,)", "(", "lognormal(1h,0.0001))"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDistribution(v1alpha1.Duration(text))
		if err != nil || d == nil {
			return
		}
		for _, u := range []float64{1e-9, 0.5, 1 - 1e-9} {
			if got := d.at(u); got < 0 || got > maxDuration {
				t.Errorf("%q at %g: %s", text, u, got)
			}
		}
	})
}

// TestChance: what is drawn is the same again, differs by all that it is drawn for, and is spread evenly.
func TestChance(t *testing.T) {
	if NewChance(1, "a").of("x", "c", 0) != NewChance(1, "a").of("x", "c", 0) {
		t.Error("drawn again it differs")
	}
	one := NewChance(1, "a").of("x", "c", 0)
	for _, other := range []float64{
		NewChance(2, "a").of("x", "c", 0), NewChance(1, "b").of("x", "c", 0), NewChance(1, "a").of("y", "c", 0),
		NewChance(1, "a").of("x", "d", 0), NewChance(1, "a").of("x", "c", 1), NewChance(1, "a").of("xc", "", 0),
	} {
		if other == one {
			t.Error("two draws for different things are the same")
		}
	}
	const n, bins = 100000, 10
	var counts [bins]int
	sum := 0.0
	for i := range n {
		u := NewChance(7, "pod").of("runFor", "c", int64(i))
		counts[int(u*bins)]++
		sum += u
	}
	for i, count := range counts {
		if math.Abs(float64(count)-n/bins) > 500 {
			t.Errorf("bin %d has %d of %d", i, count, n)
		}
	}
	if mean := sum / n; math.Abs(mean-0.5) > 0.005 {
		t.Errorf("mean %g", mean)
	}
}
