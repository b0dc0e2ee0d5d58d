package worker

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/probe"
)

// probing is the probing of one container: readiness goes on while the pod ends, startup and liveness don't.
type probing struct {
	id        string
	cancel    context.CancelFunc
	stopVital context.CancelFunc
}

// syncProbes lets exactly the running containers with probes be probed.
func (w *Worker) syncProbes(ctx context.Context, pod *v1.Pod, stage lifecycle.Stage) {
	running := map[string]*lifecycle.Container{}
	for i := range w.observed.Containers {
		c := &w.observed.Containers[i]
		if c.State == lifecycle.Running {
			running[c.Name] = c
		}
	}
	for name, p := range w.probes {
		if c := running[name]; c == nil || c.ID != p.id {
			p.cancel()
			delete(w.probes, name)
		} else if stage != lifecycle.StageRunning {
			p.stopVital()
		}
	}
	if stage != lifecycle.StageRunning {
		return
	}
	for name, c := range running {
		spec := containerSpec(pod, name)
		if w.probes[name] != nil || spec == nil || w.starting != nil && w.starting.container == name {
			continue
		}
		if spec.StartupProbe != nil || spec.LivenessProbe != nil || spec.ReadinessProbe != nil {
			w.probes[name] = w.startProbing(ctx, pod, spec, c)
		}
	}
}

func (w *Worker) startProbing(ctx context.Context, pod *v1.Pod, spec *v1.Container, c *lifecycle.Container) *probing {
	ctx, cancel := context.WithCancel(ctx)
	vital, stopVital := context.WithCancel(ctx)
	t := w.target(pod, spec, c.ID, c.StartedAt)
	started := w.memory.ProbeOf(spec.Name, c.ID).Started || spec.StartupProbe == nil
	w.ops.Go(func() {
		if !started && !w.probeStartup(vital, pod, spec, t) {
			return
		}
		if spec.LivenessProbe != nil {
			w.ops.Go(func() { w.probe(vital, pod, "Liveness", spec.LivenessProbe, t, w.liveness(spec, t)) })
		}
		if spec.ReadinessProbe != nil {
			w.probe(ctx, pod, "Readiness", spec.ReadinessProbe, t, w.readiness(spec, t))
		}
	})
	return &probing{c.ID, cancel, stopVital}
}

func (w *Worker) target(pod *v1.Pod, spec *v1.Container, id string, started time.Time) probe.Target {
	t := probe.Target{ID: id, Container: spec, StartedAt: started}
	ips := []string(nil)
	if pod.Spec.HostNetwork {
		ips = w.deps.Node().IPs
	} else {
		for _, s := range w.observed.Sandboxes {
			if s.Ready {
				ips = s.IPs
			}
		}
	}
	if len(ips) > 0 {
		t.IP = ips[0]
	}
	return t
}

// probeStartup reports whether the container has started.
func (w *Worker) probeStartup(ctx context.Context, pod *v1.Pod, spec *v1.Container, t probe.Target) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	good := false
	w.probe(ctx, pod, "Startup", spec.StartupProbe, t, func(v probe.Verdict) {
		good = v == probe.Good
		w.report(func(context.Context) {
			p := w.memory.ProbeOf(spec.Name, t.ID)
			if good {
				p.Started = true
			} else {
				p.Unhealthy = "startup"
			}
		})
		cancel()
	})
	return good
}

func (w *Worker) liveness(spec *v1.Container, t probe.Target) func(probe.Verdict) {
	return func(v probe.Verdict) {
		if v == probe.Bad {
			w.report(func(context.Context) { w.memory.ProbeOf(spec.Name, t.ID).Unhealthy = "liveness" })
		}
	}
}

func (w *Worker) readiness(spec *v1.Container, t probe.Target) func(probe.Verdict) {
	return func(v probe.Verdict) {
		w.report(func(context.Context) { w.memory.ProbeOf(spec.Name, t.ID).Ready = v == probe.Good })
	}
}

// probe runs one probe and records what goes wrong. Verdicts are told once each.
func (w *Worker) probe(ctx context.Context, pod *v1.Pod, name string, spec *v1.Probe, t probe.Target, verdict func(probe.Verdict)) {
	w.deps.Probes.Run(ctx, spec, t, func(result probe.Result, output string, v probe.Verdict) {
		switch result {
		case probe.Failure:
			w.event(pod, t.Container.Name, v1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %s", name, output))
		case probe.Errored:
			w.event(pod, t.Container.Name, v1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe errored: %s", name, output))
		case probe.Warning:
			w.event(pod, t.Container.Name, v1.EventTypeWarning, "ProbeWarning", fmt.Sprintf("%s probe warning: %s", name, output))
		}
		if v != probe.NoChange {
			klog.FromContext(ctx).V(3).Info("Probe changed its verdict", "probe", name, "container", t.Container.Name, "good", v == probe.Good)
			verdict(v)
		}
	})
}

// adopt takes over what the API says of containers that ran before this agent did: they were started and ready and stay so until a probe
// says otherwise.
func (w *Worker) adopt(pod *v1.Pod) {
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			for i := range w.observed.Containers {
				c := &w.observed.Containers[i]
				if c.Name == s.Name && c.State == lifecycle.Running && s.ContainerID == w.deps.RuntimeName+"://"+c.ID {
					p := w.memory.ProbeOf(c.Name, c.ID)
					p.Ready, p.Started = s.Ready, s.Started != nil && *s.Started
				}
			}
		}
	}
}

// hook runs a lifecycle hook of a container.
func (w *Worker) hook(ctx context.Context, pod *v1.Pod, spec *v1.Container, id string, h *v1.LifecycleHandler, limit time.Duration) error {
	t := probe.Target{ID: id, Container: spec}
	if pod.Spec.HostNetwork {
		t.IP = w.deps.Node().IPs[0]
	} else if ip := w.address.Load(); ip != nil {
		t.IP = *ip
	}
	return w.deps.Probes.Hook(ctx, h, t, limit)
}
