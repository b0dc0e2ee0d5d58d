package behavior

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

func readCurve(t interface{ Fatal(...any) }, text string) (*curve, error) {
	var c v1alpha1.Curve
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return parseCurve(&c)
}

func TestCurve(t *testing.T) {
	const wave = `{points: [{at: 10s, value: 100m}, {at: 20s, value: "200%"}, {at: 30s, value: 100m}], repeat: true}`
	c, err := readCurve(t, wave)
	if err != nil {
		t.Fatal(err)
	}
	a := Amount{curve: c, request: 0.5}
	for _, test := range []struct {
		at       time.Duration
		is, used float64
	}{
		{0, 0.1, 0}, {10 * time.Second, 0.1, 1}, {15 * time.Second, 0.55, 1 + 0.325*5}, {20 * time.Second, 1, 6.5},
		{30 * time.Second, 0.1, 12}, {50 * time.Second, 1, 18.5}, {60 * time.Second, 0.1, 24},
	} {
		if got := a.At(test.at); math.Abs(got-test.is) > 1e-9 {
			t.Errorf("at %s: %g, want %g", test.at, got, test.is)
		}
		if got := a.Used(test.at); math.Abs(got-test.used) > 1e-9 {
			t.Errorf("used by %s: %g, want %g", test.at, got, test.used)
		}
	}
	if at, ok := a.Reaches(0.55); !ok || at != 15*time.Second {
		t.Errorf("reaches 0.55 at %s, %v", at, ok)
	}
	if _, ok := a.Reaches(1); ok {
		t.Error("goes above its highest point")
	}
}

func TestCurveErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{points: []}`: "points", `{points: [{value: much}]}`: "points[0].value", `{points: [{value: "x%"}]}`: "percentage",
		`{points: [{value: "-1"}]}`: "points[0].value", `{points: [{at: 5s, value: "1"}, {at: 5s, value: "2"}]}`: "points[1].at",
		`{points: [{value: "1"}], repeat: true}`: "repeat", `{points: [{value: "1"}], noisePercent: 101}`: "noisePercent",
	} {
		if _, err := readCurve(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func drawCurve(t *rapid.T) *v1alpha1.Curve {
	c := &v1alpha1.Curve{Repeat: rapid.Bool().Draw(t, "repeat")}
	at := time.Duration(rapid.IntRange(0, 5).Draw(t, "first")) * time.Second
	for range rapid.IntRange(1, 5).Draw(t, "points") {
		c.Points = append(c.Points, v1alpha1.Point{At: metav1.Duration{Duration: at}, Value: rapid.SampledFrom([]string{"0", "1", "250m", "3", "50%"}).Draw(t, "value")})
		at += time.Duration(rapid.IntRange(1, 20).Draw(t, "gap")) * time.Second
	}
	c.Repeat = c.Repeat && c.Points[len(c.Points)-1].At.Duration > 0
	return c
}

// TestUsedIsTheArea: what is used in a short time is the amount at its middle times its length, unless a point lies inside; it never shrinks; and a bound is not passed
// before it is reached.
func TestUsedIsTheArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parsed, err := parseCurve(drawCurve(t))
		if err != nil {
			t.Fatal(err)
		}
		a := Amount{curve: parsed, request: 2}
		at := time.Duration(rapid.IntRange(0, 200).Draw(t, "at"))*time.Second + 100*time.Millisecond
		const step = 10 * time.Millisecond
		got, want := a.Used(at+step)-a.Used(at), a.At(at+step/2)*step.Seconds()
		if math.Abs(got-want) > 1e-6 || got < 0 {
			t.Fatalf("used after %s: %g, want %g", at, got, want)
		}
		bound := rapid.Float64Range(0, 3).Draw(t, "bound")
		reached, ok := a.Reaches(bound)
		if (!ok || at < reached) && a.At(at) > bound+1e-6 {
			t.Fatalf("%g at %s, but %g is reached at %s (%v)", a.At(at), at, bound, reached, ok)
		}
	})
}

func TestNoise(t *testing.T) {
	b, err := ParseAnnotation(`containers: [{usage: {cpu: {points: [{value: "1"}], noisePercent: 20}}}]`)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pod{layers: []*compiled{b}, chance: NewChance(1, "u")}
	cpu := p.Container(container("c"), false, 0).CPU
	differs := false
	for at := time.Duration(0); at < time.Hour; at += noiseStep {
		v := cpu.At(at)
		if v < 0.8 || v > 1.2 || v != cpu.At(at+noiseStep-1) {
			t.Fatalf("%g at %s", v, at)
		}
		differs = differs || v != 1
	}
	if !differs {
		t.Error("there is no noise")
	}
}
