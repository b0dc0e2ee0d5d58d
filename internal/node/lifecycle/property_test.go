package lifecycle

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// randomPod is a pod of up to two init containers, sidecars among them, and up to three ordinary ones.
func randomPod(t *rapid.T) *v1.Pod {
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "p", "default", "u1"
	pod.Spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy")
	for i := range rapid.IntRange(0, 2).Draw(t, "init") {
		c := v1.Container{Name: fmt.Sprint("i", i), Image: "x"}
		if rapid.Bool().Draw(t, "sidecar") {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "ordinary") {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), Image: "x"})
	}
	return pod
}

// TestAnyLife lets random things happen to random pods and watches what must hold whatever happens.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		w.in = Input{Pod: randomPod(rt), Now: epoch, Memory: &Memory{}, Host: Host{IPs: []string{"10.0.0.1"}, Runtime: "fake"}}
		watcher := &invariants{t: rt}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			randomEvent(rt, w)
			for rounds := 0; ; rounds++ {
				plan := w.decide()
				watcher.check(w, plan)
				if len(plan.Actions) == 0 {
					break
				}
				if rounds == 30 {
					rt.Fatal("the pod does not come to rest")
				}
				for _, a := range plan.Actions {
					w.carryOut(a)
				}
			}
		}
	})
}

func randomEvent(t *rapid.T, w *world) {
	var running []*Container
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; c.State == Running {
			running = append(running, c)
		}
	}
	switch rapid.SampledFrom([]string{"exit", "exit", "exit", "time", "time", "sandbox", "agent", "unhealthy", "delete", "nothing"}).Draw(t, "event") {
	case "exit":
		if len(running) > 0 {
			w.exit(rapid.SampledFrom(running).Draw(t, "which"), rapid.Int32Range(0, 1).Draw(t, "code"), "")
		}
	case "time":
		w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "seconds")) * time.Second)
	case "sandbox":
		if s := w.in.Observed.current(); s != nil {
			s.Ready = false
		}
	case "agent":
		w.in.Memory = &Memory{}
	case "unhealthy":
		if len(running) > 0 {
			c := rapid.SampledFrom(running).Draw(t, "which")
			w.in.Memory.ProbeOf(c.Name, c.ID).Unhealthy = "liveness"
		}
	case "delete":
		if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
			w.in.Gone = true
		}
	}
}

// invariants remembers what was seen of a pod.
type invariants struct {
	t        *rapid.T
	stage    Stage
	finished v1.PodPhase
	restarts map[string]int32
}

func (v *invariants) check(w *world, plan Plan) {
	v.t.Helper()
	s := plan.Status
	if v.finished != "" && s.Phase != v.finished {
		v.t.Fatalf("a pod that has %s is now %s", v.finished, s.Phase)
	}
	if s.Phase == v1.PodSucceeded || s.Phase == v1.PodFailed {
		v.finished = s.Phase
	}
	if plan.Stage < v.stage {
		v.t.Fatalf("a pod went from %s back to %s", v.stage, plan.Stage)
	}
	v.stage = plan.Stage
	if v.restarts == nil {
		v.restarts = map[string]int32{}
	}
	starts := 0
	for _, a := range plan.Actions {
		if a.Kind == StartContainer {
			starts++
			v.checkStart(w, a)
		}
	}
	if starts > 1 {
		v.t.Fatal("two containers are started at once")
	}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for _, c := range list {
			if c.RestartCount < v.restarts[c.Name] {
				v.t.Fatalf("the restarts of %s went from %d to %d", c.Name, v.restarts[c.Name], c.RestartCount)
			}
			v.restarts[c.Name] = c.RestartCount
			if c.Ready && c.State.Waiting != nil {
				v.t.Fatalf("%s is ready and waits", c.Name)
			}
		}
	}
	if plan.Stage == StageEnded && (s.Phase != v1.PodSucceeded && s.Phase != v1.PodFailed) {
		v.t.Fatalf("an ended pod is %s", s.Phase)
	}
}

// checkStart refuses a start beside a running attempt, in a dead sandbox, or of an ordinary container before initialisation is over.
func (v *invariants) checkStart(w *world, a Action) {
	v.t.Helper()
	o := &w.in.Observed
	if s := o.current(); s == nil || !s.Ready || s.ID != a.Sandbox {
		v.t.Fatalf("%s is started without a sandbox", a.Container)
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.Name == a.Container && c.alive() {
			v.t.Fatalf("%s is started while %s of it is %s", a.Container, c.ID, c.State)
		}
	}
	for i := range w.in.Pod.Spec.InitContainers {
		c := &w.in.Pod.Spec.InitContainers[i]
		if c.Name == a.Container {
			return
		}
		last := o.latest(c.Name)
		begun := false
		for j := range w.in.Pod.Spec.Containers {
			if l := o.latest(w.in.Pod.Spec.Containers[j].Name); l != nil && l.SandboxID == a.Sandbox {
				begun = true
			}
		}
		if begun {
			return
		}
		if !IsSidecar(c) && (last == nil || last.State != Exited || last.ExitCode != 0 || last.SandboxID != a.Sandbox) {
			v.t.Fatalf("%s is started before %s is done", a.Container, c.Name)
		}
		if IsSidecar(c) && (last == nil || last.State != Running) {
			v.t.Fatalf("%s is started before the sidecar %s", a.Container, c.Name)
		}
	}
}

// The pauses between restarts are those of the book, whatever the container's exit code is: at once, 10, 20, 40, 80, 160, 300, 300 s.
func TestBackoffSequence(t *testing.T) {
	var b Backoff
	now := epoch
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		if got := b.Holds(now, now); got != want*time.Second {
			t.Errorf("after exit %d it pauses for %s, want %s", i+1, got, want*time.Second)
		}
		at := now
		now = now.Add(want * time.Second)
		if got := b.Holds(at, now); got != 0 {
			t.Errorf("%s later it still holds for %s", want*time.Second, got)
		}
		b.Next(at, now)
		now = now.Add(time.Second)
	}
	now = now.Add(BackoffReset)
	if got := b.Holds(now, now); got != 0 {
		t.Errorf("after ten minutes of running it pauses for %s", got)
	}
	b.Next(now, now)
	if b.Delay != BackoffFirst {
		t.Errorf("then it goes on with %s, want %s", b.Delay, BackoffFirst)
	}
}

func TestQOSClass(t *testing.T) {
	for spec, want := range map[string]v1.PodQOSClass{
		`containers: [{name: a}]`: v1.PodQOSBestEffort,
		`containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}}]`:   v1.PodQOSGuaranteed,
		`containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]`:                                    v1.PodQOSGuaranteed,
		`containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}}]`:             v1.PodQOSBurstable,
		`containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b}]`:                         v1.PodQOSBurstable,
		`containers: [{name: a, resources: {requests: {memory: 1}}}]`:                                            v1.PodQOSBurstable,
		`containers: [{name: a, resources: {limits: {ephemeral-storage: 1Gi}}}]`:                                 v1.PodQOSBestEffort,
		`{initContainers: [{name: i}], containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]}`:     v1.PodQOSBurstable,
		`{resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}, containers: [{name: a}]}`: v1.PodQOSGuaranteed,
	} {
		w := newWorld()
		w.load(t, "spec: {"+trimBraces(spec)+"}")
		if got := QOSClass(w.in.Pod); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

func trimBraces(s string) string {
	if s[0] == '{' {
		return s[1 : len(s)-1]
	}
	return s
}

func BenchmarkDecide(b *testing.B) {
	pod := &v1.Pod{}
	pod.Name, pod.UID = "p", "u"
	pod.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b"}}
	now := epoch
	observed := Observed{
		Sandboxes:  []Sandbox{{ID: "s", Ready: true, IPs: []string{"10.1.0.2"}}},
		Containers: []Container{{ID: "1", Name: "a", SandboxID: "s", State: Running, StartedAt: now}, {ID: "2", Name: "b", SandboxID: "s", State: Running, StartedAt: now}},
	}
	memory := &Memory{}
	b.ReportAllocs()
	for b.Loop() {
		Decide(Input{Pod: pod, Now: now, Observed: observed, Memory: memory, Host: Host{IPs: []string{"10.0.0.1"}, Runtime: "fake"}})
	}
}
