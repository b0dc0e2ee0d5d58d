package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// script is a core driven by commands.
type script struct {
	t    *testing.T
	core *core.Core
	now  time.Time
	pods map[string]*v1.Pod
	// plans are what is to be done about the volumes of pods, version is that of the object that was told last.
	plans   map[string]*storage.Plan
	version int
	out     bytes.Buffer
}

func newScript(t *testing.T) *script {
	return &script{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pods: map[string]*v1.Pod{}, plans: map[string]*storage.Plan{},
		core: core.New(core.Config{
			Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}},
			Cycle:    cycle.Options{Seed: 1, Oracle: true}, Queue: queue.Options{},
		}),
	}
}

// run executes a transcript and returns it with the output that came.
func (s *script) run(text string) string {
	var result strings.Builder
	skipping := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case skipping && line != "":
			continue
		case skipping:
			skipping = false
			result.WriteString("\n")
		case line == "----":
			result.WriteString("----\n" + s.out.String())
			s.out.Reset()
			skipping = true
		case line == "" || strings.HasPrefix(line, "#"):
			result.WriteString(line + "\n")
		default:
			result.WriteString(line + "\n")
			s.command(strings.Fields(line))
		}
	}
	return result.String()
}

// args are the words of a command of the form key=value; a word without = is true.
type args map[string][]string

func parse(words []string) args {
	a := args{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		a[key] = append(a[key], value)
	}
	return a
}

func (a args) get(key, otherwise string) string {
	if len(a[key]) > 0 {
		return a[key][0]
	}
	return otherwise
}

// set reads a=b,c=d.
func set(text string) map[string]string {
	out := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			out[key] = value
		}
	}
	return out
}

func (s *script) command(words []string) {
	a, name := args{}, ""
	if len(words) > 1 {
		name, a = words[1], parse(words[2:])
	}
	switch words[0] {
	case "node":
		s.core.SetNode(Node(s.t, name, words[2:]...), s.now)
	case "delete-node":
		s.core.DeleteNode(name, s.now)
	case "pod":
		s.pods[name] = Pod(s.t, name, words[2:]...)
		s.core.SetPod(s.pods[name], s.now)
	case "delete-pod":
		s.core.DeletePod(types.UID(name), s.now)
		delete(s.pods, name)
	case "terminating":
		s.change(name, func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
	case "ungate":
		s.change(name, func(p *v1.Pod) { p.Spec.SchedulingGates = nil })
	case "relabel":
		s.change(name, func(p *v1.Pod) { p.Labels = set(a.get("labels", "")) })
	case "service":
		s.core.Ledger.SetService("default", name, set(a.get("select", "")))
	case "budget":
		s.budget(name, a)
	case "cycle":
		s.cycle()
	case "bound":
		s.bound(name)
	case "bind-failed":
		s.core.BindFailed(types.UID(name), s.now)
	case "evict-failed":
		s.core.EvictionFailed(types.UID(name), types.UID(a.get("for", "")), s.now)
	case "advance":
		d, err := time.ParseDuration(name)
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
	case "queue":
		s.queue()
	case "examine":
		s.examine(name)
	case "explain":
		x := s.core.Explain(s.pods[name], cycle.RecordOptions{Top: 2, Misses: 3, Node: a.get("node", "")})
		text, err := yaml.Marshal(x)
		if err != nil {
			s.t.Fatal(err)
		}
		s.out.Write(text)
	default:
		if !s.storage(words[0], name, a) {
			s.t.Fatalf("unknown command %q", words[0])
		}
	}
}

// change applies a change to a pod as the API server would tell it.
func (s *script) change(name string, do func(*v1.Pod)) {
	pod := s.pods[name].DeepCopy()
	do(pod)
	s.pods[name] = pod
	s.core.SetPod(pod, s.now)
}

func (s *script) budget(name string, a args) {
	var allowed int32
	fmt.Sscan(a.get("allowed", "0"), &allowed)
	s.core.Ledger.SetBudget(&ledger.Budget{
		Namespace: "default", Name: name, Selector: labels.SelectorFromSet(set(a.get("select", ""))), Allowed: allowed,
	})
}

// cycle makes all decisions that can be made now.
func (s *script) cycle() {
	for attempt := s.core.Next(s.now); attempt != nil; attempt = s.core.Next(s.now) {
		if attempt.Node != "" {
			fmt.Fprintf(&s.out, "%s -> %s (%d of %d nodes, score %d)\n", attempt.Pod.Name, attempt.Node,
				attempt.Decision.Feasible, attempt.Decision.Nodes, attempt.Decision.Score)
			s.plan(attempt.Pod.Name, attempt.Volumes)
			continue
		}
		fmt.Fprintf(&s.out, "%s: %s\n", attempt.Pod.Name, attempt.Message())
		if e := attempt.Eviction; e != nil && e.Node != "" {
			var names []string
			for _, victim := range e.Victims {
				names = append(names, victim.Name)
			}
			fmt.Fprintf(&s.out, "  preempts %s on %s, %d budgets violated\n", strings.Join(names, ", "), e.Node, e.Violations)
		}
		for _, pod := range attempt.Displaced {
			fmt.Fprintf(&s.out, "  %s loses its nomination\n", pod.Name)
		}
	}
}

// bound is the API server's word that a pod has been bound where it was assumed.
func (s *script) bound(name string) {
	record := s.core.Ledger.Pod(types.UID(name))
	if record == nil {
		s.t.Fatalf("pod %s is not assumed anywhere", name)
	}
	s.core.Bound(types.UID(name), s.now)
	s.change(name, func(p *v1.Pod) { p.Spec.NodeName = s.core.Ledger.NodeOf(record) })
}

func (s *script) queue() {
	var lines []string
	s.core.Queue.Each(func(item *queue.Item) {
		line := fmt.Sprintf("%s: %s", item.Pod.Name, item.Place)
		if item.Place == queue.Backoff {
			line += fmt.Sprintf(" for %v", item.Until.Sub(s.now))
		}
		if item.Place == queue.Unschedulable {
			line += fmt.Sprintf(" by %s", strings.Join(item.Rejectors, ", "))
		}
		if item.Nominated != "" {
			line += ", nominated to " + item.Nominated
		}
		lines = append(lines, line)
	})
	slices.Sort(lines)
	if at, ok := s.core.NextWake(); ok {
		lines = append(lines, fmt.Sprintf("next wake in %v", at.Sub(s.now)))
	}
	if len(lines) == 0 {
		lines = []string{"(empty)"}
	}
	s.out.WriteString(strings.Join(lines, "\n") + "\n")
}

// examine shows every node's scores for a pod.
func (s *script) examine(name string) {
	pod := s.pods[name]
	shape := s.core.Ledger.Shapes.Compile(pod)
	defer s.core.Ledger.Shapes.Release(shape)
	x := s.core.Engine(v1.DefaultSchedulerName).Examine(&cycle.Pod{UID: pod.UID, Shape: shape})
	for _, node := range x.Nodes {
		if node.Rejected != nil {
			fmt.Fprintf(&s.out, "%s: %s: %s\n", node.Node, node.Rejected.Plugin, strings.Join(node.Rejected.Reasons, ", "))
			continue
		}
		fmt.Fprintf(&s.out, "%s: %d\n", node.Node, node.Total)
		for i, part := range node.Parts {
			plugin := x.Plugins[i]
			fmt.Fprintf(&s.out, "  %s %d, normalised %d, weight %d\n", plugin.Name, part.Raw, part.Normalized, plugin.Weight)
		}
	}
}
