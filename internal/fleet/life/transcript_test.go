package life

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestTranscripts replays testdata/*.txt: a command line with lines that belong to it, a line of four dashes, and what came of it up to an empty line.
//
//	pod              a new pod: its behavior as YAML, "---", its spec as YAML
//	after 10s        time passes; each moment at which something happens is shown
//	delete SECONDS   the API deletes the pod with that grace
//	evict            the node ends it
//	adopt            another process takes it over
//	node up|down     whether containers start
//	debug NAME       an ephemeral container is added
//	phase PHASE      somebody else says how the pod is
//	gate NAME        a readiness gate's condition is true
//	status           the whole status as YAML
//	log NAME         what the container wrote
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(data))
			if *update {
				err = os.WriteFile(file, []byte(got), 0o644)
			} else if got != string(data) {
				t.Errorf("%s differs; -update rewrites it. Got:\n%s", file, got)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func replay(t *testing.T, text string) string {
	var out strings.Builder
	w := &world{now: epoch, up: true}
	blocks := strings.Split(strings.TrimRight(text, "\n"), "\n\n")
	for i, block := range blocks {
		if i > 0 {
			out.WriteString("\n")
		}
		var lines []string
		for line := range strings.SplitSeq(block, "\n") {
			if line == "----" {
				break
			}
			lines = append(lines, line)
		}
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			fmt.Fprintln(&out, lines[0])
			lines = lines[1:]
		}
		if len(lines) > 0 {
			fmt.Fprintf(&out, "%s\n----\n%s", strings.Join(lines, "\n"), w.command(t, strings.Fields(lines[0]), strings.Join(lines[1:], "\n")))
		}
	}
	return out.String()
}

// world is the node and the API of one pod.
type world struct {
	out    strings.Builder
	now    time.Time
	up     bool
	images map[string]bool
	given  int
	rules  *behavior.Rules
	pod    *Pod
	shown  string
}

func (w *world) Address() string           { return "172.28.0.1" }
func (w *world) HasImage(name string) bool { return w.images[name] }
func (w *world) Starts() bool              { return w.up }
func (w *world) Assign() string            { w.given++; return fmt.Sprintf("10.128.0.%d", w.given) }

func (w *world) command(t *testing.T, args []string, body string) string {
	w.out.Reset()
	switch args[0] {
	case "pod":
		w.load(t, body)
	case "after":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			t.Fatal(err)
		}
		w.pass(t, w.now.Add(d))
		return w.out.String()
	case "status":
		data, err := yaml.Marshal(w.pod.API().Status)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	case "log":
		w.log(args[1], len(args) > 2)
		return w.out.String()
	default:
		w.happen(t, args)
	}
	w.pass(t, w.now)
	return w.out.String()
}

func (w *world) load(t *testing.T, body string) {
	does, spec, _ := strings.Cut(body, "---\n")
	api := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u1", Generation: 1, Annotations: map[string]string{"bayplan.dev/behavior": does}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &api.Spec); err != nil {
		t.Fatal(err)
	}
	if api.Spec.RestartPolicy == "" {
		api.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	for i := range api.Spec.Containers {
		if api.Spec.Containers[i].Image == "" {
			api.Spec.Containers[i].Image = "app:1"
		}
	}
	var err error
	if w.rules, err = behavior.Compile(nil); err != nil {
		t.Fatal(err)
	}
	w.now, w.up, w.given, w.shown = epoch, true, 0, ""
	w.images = map[string]bool{"here:1": true}
	w.adopt(t, api)
}

func (w *world) adopt(t *testing.T, api *corev1.Pod) {
	does, err := w.rules.For(api, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.pod = New(api, does, w, w.now)
}

func (w *world) happen(t *testing.T, args []string) {
	api := w.pod.API().DeepCopy()
	switch args[0] {
	case "delete":
		seconds, _ := strconv.ParseInt(args[1], 10, 64)
		api.DeletionTimestamp = stamp(w.now.Add(time.Duration(seconds) * time.Second))
		api.DeletionGracePeriodSeconds = &seconds
	case "evict":
		w.pod.Evict(w.now, "The node was low on resource: memory.")
		return
	case "adopt":
		w.adopt(t, api)
		return
	case "node":
		w.up = args[1] == "up"
	case "debug":
		api.Spec.EphemeralContainers = append(api.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: args[1], Image: "debug:1"},
		})
		api.Generation++
	case "phase":
		api.Status.Phase = corev1.PodPhase(args[1])
	case "gate":
		api.Status.Conditions = append(api.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(args[1]), Status: corev1.ConditionTrue})
	default:
		t.Fatalf("unknown command %q", args[0])
	}
	w.pod.Update(api)
}

// pass lets time pass, and the pod act at each moment at which it asked for it. What is reported goes through JSON, as through an API.
func (w *world) pass(t *testing.T, until time.Time) {
	for range 100 {
		next := w.pod.Step(w.now)
		w.report(t)
		if next.IsZero() || next.After(until) {
			w.now = until
			return
		}
		w.now = next
	}
	t.Fatal("does not come to rest")
}

func (w *world) report(t *testing.T) {
	api := w.pod.API().DeepCopy()
	data, err := yaml.Marshal(w.pod.Status(w.now))
	if err != nil {
		t.Fatal(err)
	}
	api.Status = corev1.PodStatus{}
	if err := yaml.Unmarshal(data, &api.Status); err != nil {
		t.Fatal(err)
	}
	w.pod.Update(api)
	for _, e := range w.pod.Events() {
		fmt.Fprintf(&w.out, "%s event %s: %s\n", w.now.Sub(epoch), e.Reason, e.Message)
	}
	text := summary(w.pod, &api.Status)
	if text != w.shown {
		fmt.Fprintf(&w.out, "%s %s", w.now.Sub(epoch), text)
	}
	w.shown = text
}

func summary(p *Pod, s *corev1.PodStatus) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s", s.Phase)
	if s.Reason != "" {
		fmt.Fprintf(&out, " (%s)", s.Reason)
	}
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type != corev1.PodScheduled {
			fmt.Fprintf(&out, " %s", c.Type)
		}
	}
	if p.Ended() {
		out.WriteString(" ended")
	}
	out.WriteString("\n")
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range list {
			fmt.Fprintf(&out, "  %s: %s", c.Name, stateText(c.State))
			if c.Ready {
				out.WriteString(" ready")
			}
			if c.RestartCount > 0 {
				fmt.Fprintf(&out, " restarts=%d", c.RestartCount)
			}
			if c.LastTerminationState.Terminated != nil {
				fmt.Fprintf(&out, " last=%s", stateText(c.LastTerminationState))
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

func stateText(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("terminated(%s %d)", s.Terminated.Reason, s.Terminated.ExitCode)
	case s.Waiting != nil && s.Waiting.Message != "":
		return fmt.Sprintf("waiting(%s: %s)", s.Waiting.Reason, s.Waiting.Message)
	case s.Waiting != nil:
		return fmt.Sprintf("waiting(%s)", s.Waiting.Reason)
	}
	return "none"
}

func (w *world) log(name string, previous bool) {
	log, reason, ok := w.pod.Log(name, previous)
	if !ok {
		fmt.Fprintf(&w.out, "none: %s\n", reason)
		return
	}
	end := w.now
	if !log.Ended.IsZero() {
		end = log.Ended
	}
	for i := range log.Lines.Count(end.Sub(log.Start)) {
		text, after := log.Lines.Line(i)
		fmt.Fprintf(&w.out, "%s %s\n", log.Start.Add(after).Sub(epoch), text)
	}
}
