package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a runtime and an API of one pod, which do at once what they are told.
type world struct {
	in   Input
	out  strings.Builder
	made int
	held map[string]bool
	// failing says why starts of a container fail: reason and words of the message.
	failing map[string][]string
}

func newWorld() *world { return &world{held: map[string]bool{}, failing: map[string][]string{}} }

func (w *world) load(t *testing.T, body string) {
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(body), pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.UID, pod.Generation = "default", "u1", 1
	if pod.Name == "" {
		pod.Name = "p"
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	}
	w.in = Input{Pod: pod, Now: epoch, Memory: &Memory{}, Host: Host{IPs: []string{"10.0.0.1"}, Runtime: "fake"}}
	w.made, w.failing = 0, map[string][]string{}
}

func (w *world) command(t *testing.T, args []string, body string) string {
	w.out.Reset()
	switch args[0] {
	case "pod":
		w.load(t, body)
		w.step()
	case "step":
		w.step()
	case "decide":
		w.decide()
	case "status":
		data, err := yaml.Marshal(w.in.Pod.Status)
		if err != nil {
			t.Fatal(err)
		}
		w.out.Write(data)
	default:
		w.happen(t, args)
		w.step()
	}
	return w.out.String()
}

// happen is one thing that comes from outside of the agent.
func (w *world) happen(t *testing.T, args []string) {
	m := w.in.Memory
	switch args[0] {
	case "after":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			t.Fatal(err)
		}
		w.in.Now = w.in.Now.Add(d)
	case "exit":
		code, err := strconv.Atoi(args[2])
		if err != nil {
			t.Fatal(err)
		}
		w.exit(w.in.Observed.latest(args[1]), int32(code), strings.Join(args[3:], " "))
	case "fail": // from now on starts of this container fail; without a reason they work again
		w.failing[args[1]] = args[2:]
	case "probe":
		w.probe(m.ProbeOf(args[1], w.in.Observed.latest(args[1]).ID), args[2])
	case "delete":
		seconds := int64(30)
		if len(args) > 1 {
			seconds, _ = strconv.ParseInt(args[1], 10, 64)
		}
		now := metav1.NewTime(w.in.Now)
		w.in.Pod.DeletionTimestamp, w.in.Pod.DeletionGracePeriodSeconds = &now, &seconds
	case "gone":
		w.in.Gone = true
	case "sandbox-dies":
		w.in.Observed.current().Ready = false
	case "forget": // the agent is started anew and the runtime has lost everything
		w.in.Memory, w.in.Observed = &Memory{Interrupted: len(args) > 1}, Observed{}
	case "restart-agent":
		w.in.Memory = &Memory{}
	case "image":
		w.in.Pod.Spec.Containers[0].Image = args[1]
	case "debug":
		w.in.Pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: args[1], Image: "debug"}}}
	case "hold": // this container ignores TERM
		w.held[args[1]] = true
	case "evict":
		grace := 5 * time.Second
		m.Ending = &Ending{Phase: v1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory.", Grace: &grace,
			Condition: &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet"}}
	default:
		t.Fatalf("unknown command %q", args[0])
	}
}

func (w *world) probe(p *Probe, result string) {
	switch result {
	case "started":
		p.Started = true
	case "ready", "unready":
		p.Ready = result == "ready"
	default:
		p.Unhealthy = result
	}
}

func (w *world) exit(c *Container, code int32, reason string) {
	c.State, c.ExitCode, c.Reason, c.FinishedAt = Exited, code, reason, w.in.Now
}

// step decides and acts until nothing is left to do, then shows how the pod stands.
func (w *world) step() {
	for range 30 {
		plan := w.decide()
		if len(plan.Actions) == 0 {
			w.summary(plan)
			return
		}
		for _, a := range plan.Actions {
			w.carryOut(a)
		}
	}
	fmt.Fprintln(&w.out, "does not come to rest")
}

func (w *world) decide() Plan {
	plan := Decide(w.in)
	w.in.Pod.Status = plan.Status
	for _, e := range plan.Events {
		fmt.Fprintf(&w.out, "event %s %s: %s\n", e.Type, e.Reason, e.Message)
	}
	for _, a := range plan.Actions {
		fmt.Fprintln(&w.out, a)
	}
	return plan
}

func (w *world) carryOut(a Action) {
	w.made++
	o := &w.in.Observed
	switch a.Kind {
	case CreateSandbox:
		o.Sandboxes = append(o.Sandboxes, Sandbox{ID: fmt.Sprint("s", w.made), Ready: true, Attempt: uint32(a.Attempt), CreatedAt: w.in.Now, IPs: []string{"10.1.0.2"}})
	case StopSandbox:
		for i := range o.Sandboxes {
			o.Sandboxes[i].Ready = o.Sandboxes[i].Ready && o.Sandboxes[i].ID != a.ID
		}
	case RemoveSandbox:
		o.Sandboxes = slices.DeleteFunc(o.Sandboxes, func(s Sandbox) bool { return s.ID == a.ID })
	case StartContainer:
		if why := w.failing[a.Container]; len(why) > 0 {
			w.in.Memory.Of(a.Container).FailStart(w.in.Now, why[0], strings.Join(why[1:], " "))
			if why[0] == ReasonRun { // the runtime keeps what it made
				_, hash := w.image(a.Container)
				o.Containers = append(o.Containers, Container{ID: fmt.Sprint("c", w.made), Name: a.Container, SandboxID: a.Sandbox, Attempt: a.Attempt,
					State: Exited, CreatedAt: w.in.Now, FinishedAt: w.in.Now, ExitCode: 128, Reason: "StartError", SpecHash: hash})
			}
			return
		}
		image, hash := w.image(a.Container)
		w.in.Memory.Of(a.Container).Started()
		o.Containers = append(o.Containers, Container{ID: fmt.Sprint("c", w.made), Name: a.Container, SandboxID: a.Sandbox, Attempt: a.Attempt,
			State: Running, CreatedAt: w.in.Now, StartedAt: w.in.Now, Image: image, ImageID: "sha256:1", SpecHash: hash})
	case StopContainer:
		w.stop(a)
	case RemoveContainer:
		for i := range o.Containers {
			if o.Containers[i].ID == a.ID {
				o.Containers = append(o.Containers[:i], o.Containers[i+1:]...)
				return
			}
		}
	}
}

func (w *world) stop(a Action) {
	if w.held[a.Container] {
		if w.in.Busy.Stops == nil {
			w.in.Busy.Stops = map[string]time.Duration{}
		}
		w.in.Busy.Stops[a.ID] = a.Grace
		return
	}
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; c.ID == a.ID {
			w.exit(c, 143, "Error")
		}
	}
}

func (w *world) image(name string) (image, hash string) {
	s := &w.in.Pod.Spec
	for _, list := range [][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].Image, SpecHash(&list[i])
			}
		}
	}
	return "debug", ""
}

func (w *world) summary(plan Plan) {
	s := plan.Status
	fmt.Fprintf(&w.out, "%s %s", plan.Stage, s.Phase)
	if s.Reason != "" {
		fmt.Fprintf(&w.out, " (%s: %s)", s.Reason, s.Message)
	}
	for _, c := range s.Conditions {
		if c.Status == v1.ConditionTrue {
			fmt.Fprintf(&w.out, " %s", c.Type)
		}
	}
	if !plan.Wake.IsZero() {
		fmt.Fprintf(&w.out, " wake=+%s", plan.Wake.Sub(w.in.Now))
	}
	fmt.Fprintln(&w.out)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range list {
			fmt.Fprintf(&w.out, "  %s: %s ready=%t restarts=%d", c.Name, stateText(c.State), c.Ready, c.RestartCount)
			if c.LastTerminationState.Terminated != nil {
				fmt.Fprintf(&w.out, " last=%s", stateText(c.LastTerminationState))
			}
			fmt.Fprintln(&w.out)
		}
	}
}

func stateText(s v1.ContainerState) string {
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
