package behavior

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

func container(name string) *corev1.Container {
	return &corev1.Container{Name: name, Image: "app:1", Command: []string{"sleep"}, Args: []string{"10"}}
}

func pod(name, annotation string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}}}
	if annotation != "" {
		p.Annotations = map[string]string{v1alpha1.AnnotationBehavior: annotation}
	}
	return p
}

func compileText(t testing.TB, texts ...string) (*Rules, error) {
	t.Helper()
	var objects []v1alpha1.PodBehavior
	for i, text := range texts {
		b := v1alpha1.PodBehavior{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)}}
		if err := yaml.UnmarshalStrict([]byte(text), &b.Spec); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, b)
	}
	return Compile(objects)
}

// TestSelection: each rule says how long a container runs; the one that a pod gets tells which rule it was.
func TestSelection(t *testing.T) {
	rules, err := compileText(t,
		`{behavior: {containers: [{runFor: 1s}]}}`,
		`{priority: 1, selector: {namespaces: [kube-*]}, behavior: {containers: [{runFor: 2s}]}}`,
		`{priority: 2, selector: {names: ["*b"]}, behavior: {containers: [{names: [special], runFor: 3s}, {exitCode: 4}]}}`,
		`{priority: 3, selector: {pods: {matchLabels: {app: c}}, nodes: {matchLabels: {zone: z}}}, behavior: {containers: [{commands: ["sleep *"], runFor: 5s}]}}`,
		`{priority: 4, selector: {owners: [Job]}, behavior: {containers: [{images: ["app:*"], runFor: 6s}]}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	owned := pod("a", "")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: ptr.To(true)}}
	system := pod("a", "")
	system.Namespace = "kube-system"
	for _, test := range []struct {
		pod       *corev1.Pod
		container string
		zone      string
		want      time.Duration
		code      int32
	}{
		{pod("a", ""), "c", "", time.Second, 0},
		{system, "c", "", 2 * time.Second, 0},
		{pod("b", ""), "special", "", 3 * time.Second, 4},
		{pod("b", ""), "c", "", time.Second, 4},
		{pod("c", ""), "c", "", time.Second, 0},
		{pod("c", ""), "c", "z", 5 * time.Second, 0},
		{owned, "c", "", 6 * time.Second, 0},
		{pod("b", "containers: [{runFor: 9s}]"), "c", "", 9 * time.Second, 4},
	} {
		does, err := rules.For(test.pod, map[string]string{"zone": test.zone}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := does.Container(container(test.container), false, 0); got.RunFor != test.want || got.ExitCode != test.code {
			t.Errorf("%s, container %s, zone %q: %s and %d, want %s and %d", test.pod.Name, test.container, test.zone, got.RunFor, got.ExitCode, test.want, test.code)
		}
	}
}

func TestAttemptsAndPercent(t *testing.T) {
	rules, err := compileText(t, `{behavior: {containers: [{attempts: 2, exitCode: 1}, {percent: 30, exitCode: 7}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i := range 1000 {
		does, err := rules.For(pod(fmt.Sprint("p", i), ""), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := does.Container(container("c"), false, 1); got.ExitCode != 1 || !got.Ends {
			t.Fatalf("the second run ends with %d", got.ExitCode)
		}
		if does.Container(container("c"), false, 2).ExitCode == 7 {
			failed++
		}
	}
	if failed < 260 || failed > 340 {
		t.Errorf("%d of 1000 fail, want about 300", failed)
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{behavior: {startDelay: soon}}`:                                                `PodBehavior "r0": spec.behavior.startDelay`,
		`{behavior: {containers: [{}, {runFor: x}]}}`:                                   "spec.behavior.containers[1].runFor",
		`{behavior: {containers: [{exitCode: 300}]}}`:                                   "containers[0].exitCode: 300 must be from 0 to 255",
		`{behavior: {containers: [{percent: 101}]}}`:                                    "containers[0].percent",
		`{behavior: {containers: [{pull: {failures: 2}}]}}`:                             "containers[0].pull.error",
		`{behavior: {containers: [{probes: {liveness: {failAfter: x}}}]}}`:              "probes.liveness.failAfter",
		`{behavior: {containers: [{usage: {cpu: {points: []}}}]}}`:                      "usage.cpu: points",
		`{behavior: {containers: [{logs: {lines: [a], repeat: true}}]}}`:                "logs: repeat",
		`{selector: {pods: {matchExpressions: [{key: a, operator: X}]}}, behavior: {}}`: "selector.pods",
	} {
		if _, err := compileText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	rules, err := compileText(t, `{behavior: {containers: [{runFor: 1s}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	does, err := rules.For(pod("a", "containers: [{runsFor: 1s}]"), nil, 1)
	if err == nil || !strings.Contains(err.Error(), "bayplan.dev/behavior") {
		t.Errorf("a bad annotation: %v", err)
	}
	if got := does.Container(container("c"), false, 0).RunFor; got != time.Second {
		t.Errorf("with a bad annotation the pod runs for %s, not as rules say", got)
	}
}

// TestPatterns compares with regular expressions.
func TestPatterns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,6}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "text")
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(text)
		if got := matches(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}

func FuzzParseAnnotation(f *testing.F) {
	f.Add("containers: [{runFor: normal(1s,1s), logs: {lines: [a], every: 1s, repeat: true}}]")
	f.Add("startDelay: 1s\ncontainers:\n- usage: {cpu: {points: [{value: 10%}, {at: 1s, value: '1'}], repeat: true}}")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseAnnotation(text)
		if err != nil {
			return
		}
		c := (&Pod{layers: []*compiled{b}, chance: NewChance(1, "u")}).Container(container("c"), false, 0)
		if c.RunFor < 0 || c.CPU.At(time.Minute) < 0 || c.Logs.Count(time.Minute) < 0 {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

func BenchmarkContainer(b *testing.B) {
	rules, err := compileText(b, `{behavior: {containers: [{runFor: "exponential(30s)"}]}}`, `{priority: 1, selector: {names: ["x*"]}, behavior: {startDelay: 1s}}`)
	if err != nil {
		b.Fatal(err)
	}
	p, c := pod("a", ""), container("c")
	b.ReportAllocs()
	for b.Loop() {
		does, _ := rules.For(p, nil, 1)
		does.Container(c, false, 0)
	}
}
