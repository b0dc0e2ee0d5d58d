package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/bayplan/bayplan/internal/fleet/life"
)

// pod is a pod on a simulated node.
type pod struct {
	// node is nil when the node is gone: the pod's address is kept until the pod is gone too.
	node  *node
	life  *life.Pod
	timer timer
	// charged is what the pod has from its node, nil when it has nothing.
	charged map[corev1.ResourceName]int64
	// sent is the status that was written last, version what the pod became by it.
	sent    *corev1.PodStatus
	version string
	// failures is how often in a row a write has failed.
	failures int
}

// podChanged is told by the informer.
func (f *Fleet) podChanged(api *corev1.Pod) {
	if api.Spec.NodeName == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[api.Spec.NodeName]
	if n == nil || !f.running {
		return
	}
	p := f.pods[api.UID]
	switch {
	case p == nil:
		f.takePod(n, api)
	case older(api, p.life.API()):
	case api.ResourceVersion == p.version:
		// Our own write comes back. The informer keeps this copy anyway.
		p.life.Update(api)
	default:
		resized := api.Generation != p.life.API().Generation
		p.life.Update(api)
		if resized && p.charged != nil {
			p.charge(requestOf(api))
		}
		f.step(p, f.clock.Now())
	}
}

// older reports whether a is an older state of the pod than b.
func older(a, b *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// takePod takes a pod over that has come to a node.
func (f *Fleet) takePod(n *node, api *corev1.Pod) {
	does, err := f.rules.For(api, n.api.Labels, f.cfg.Seed)
	if err != nil {
		f.cfg.Recorder.Eventf(api, corev1.EventTypeWarning, "InvalidBehavior", "The pod does what rules say, for its own behavior cannot be understood: %v", err)
	}
	now := f.clock.Now()
	f.podIPs.keep(api.Status.PodIP)
	p := &pod{node: n, life: life.New(api, does, n, now)}
	p.timer.Value = func(now time.Time) { f.step(p, now) }
	f.admit(p, now)
	f.pods[api.UID], n.pods[api.UID] = p, p
	f.step(p, now)
}

// podGone is told by the informer.
func (f *Fleet) podGone(api *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[api.UID]
	if p == nil {
		return
	}
	f.wheel.Stop(&p.timer)
	p.charge(nil)
	delete(f.pods, api.UID)
	if p.node != nil {
		delete(p.node.pods, api.UID)
	}
	if ip := p.life.IP(); ip != "" {
		f.podIPs.free(ip)
	}
}

// step lets happen to a pod what happens until now, and has the outcome written. The caller holds the lock.
func (f *Fleet) step(p *pod, now time.Time) {
	if p.node == nil || p.node.silent() || !f.running {
		return
	}
	if next := p.life.Step(now); next.IsZero() {
		f.wheel.Stop(&p.timer)
	} else {
		f.at(&p.timer, next)
	}
	if p.life.Ended() && p.charged != nil {
		p.charge(nil)
	}
	api := p.life.API()
	for _, e := range p.life.Events() {
		f.cfg.Recorder.Event(api, e.Type, e.Reason, e.Message)
	}
	f.writes.pods.Add(api.UID)
}
