package daemonset

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bayplan/bayplan/internal/controller"
)

// manage plans for each node what must be there whatever the revision.
func (p *plan) manage() {
	for _, node := range p.nodes {
		p.manageNode(node)
	}
	known := map[string]bool{}
	for _, node := range p.nodes {
		known[node.Name] = true
	}
	for name, pods := range p.pods {
		if known[name] {
			continue
		}
		// The node is gone. What was assigned to it is left to pod GC; what only waits for it can never run.
		for _, pod := range pods {
			if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
				p.remove = append(p.remove, pod)
			}
		}
	}
}

func (p *plan) manageNode(node *corev1.Node) {
	where, pods := p.where[node.Name], p.pods[node.Name]
	if !where.mayStay {
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil {
				p.remove = append(p.remove, pod)
			}
		}
		return
	}
	var running []*corev1.Pod
	terminating, held := false, false
	for _, pod := range pods {
		switch {
		case pod.DeletionTimestamp != nil:
			terminating = true
		case controller.IsPodFinished(pod):
			if p.replaceFinished(pod, node.Name) {
				p.remove = append(p.remove, pod)
			}
			held = true
		default:
			running = append(running, pod)
		}
	}
	if len(running) > 1 {
		p.removeSurplus(running)
	}
	if where.shouldRun && len(running) == 0 && !terminating && !held {
		p.create = append(p.create, node.Name)
	}
}

// removeSurplus leaves one pod, or while a surge is on, one old and one new until the new one is available.
func (p *plan) removeSurplus(running []*corev1.Pod) {
	var old, updated *corev1.Pod
	for _, pod := range running {
		switch {
		case p.maxSurge() > 0 && !p.current(pod) && old == nil:
			old = pod
		case p.maxSurge() > 0 && p.current(pod) && updated == nil:
			updated = pod
		case p.maxSurge() == 0 && updated == nil:
			updated = pod
		default:
			p.remove = append(p.remove, pod)
		}
	}
	if old != nil && updated != nil && p.available(updated) {
		p.remove = append(p.remove, old)
	}
}

func (p *plan) current(pod *corev1.Pod) bool {
	return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == p.hash
}

func (p *plan) available(pod *corev1.Pod) bool {
	return controller.IsPodAvailable(pod, p.ds.Spec.MinReadySeconds, p.c.clock.Now())
}

// roll plans the next step of a rolling update.
func (p *plan) roll() {
	if p.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return
	}
	if p.maxSurge() > 0 {
		p.rollWithSurge()
		return
	}
	unavailable := 0
	var free, candidates []*corev1.Pod
	for _, node := range p.nodes {
		if !p.where[node.Name].shouldRun {
			continue
		}
		pod := p.only(node.Name)
		switch {
		case pod == nil:
			unavailable++
		case p.current(pod):
			if !p.available(pod) {
				unavailable++
			}
		case !p.available(pod):
			unavailable++
			free = append(free, pod)
		default:
			candidates = append(candidates, pod)
		}
	}
	room := max(0, p.maxUnavailable()-unavailable)
	p.remove = append(p.remove, free...)
	p.remove = append(p.remove, candidates[:min(room, len(candidates))]...)
}

// only is the pod of a node if there is exactly one and nothing is planned for it yet.
func (p *plan) only(node string) *corev1.Pod {
	pods := p.pods[node]
	if len(pods) != 1 || pods[0].DeletionTimestamp != nil || controller.IsPodFinished(pods[0]) || slices.Contains(p.remove, pods[0]) {
		return nil
	}
	return pods[0]
}

// rollWithSurge makes the new pod beside the old one, which manage removes when the new one is available.
func (p *plan) rollWithSurge() {
	surge := 0
	var free, candidates []string
	for _, node := range p.nodes {
		if !p.where[node.Name].shouldRun {
			continue
		}
		var old, updated *corev1.Pod
		for _, pod := range p.pods[node.Name] {
			switch {
			case pod.DeletionTimestamp != nil:
			case p.current(pod):
				updated = pod
			default:
				old = pod
			}
		}
		switch {
		case old == nil:
		case updated != nil:
			if !p.available(updated) {
				surge++
			}
		case !p.available(old):
			free = append(free, node.Name)
		default:
			candidates = append(candidates, node.Name)
		}
	}
	p.create = append(p.create, free...)
	p.create = append(p.create, candidates[:min(max(0, p.maxSurge()-surge), len(candidates))]...)
}

func (p *plan) maxSurge() int {
	rolling := p.ds.Spec.UpdateStrategy.RollingUpdate
	if p.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || rolling == nil {
		return 0
	}
	return p.scaled(rolling.MaxSurge, 0)
}

func (p *plan) maxUnavailable() int {
	rolling := p.ds.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return 1
	}
	n := p.scaled(rolling.MaxUnavailable, 1)
	if n == 0 && p.maxSurge() == 0 {
		return 1
	}
	return n
}

// scaled resolves a number or a share of the nodes that should run the daemon, rounded up.
func (p *plan) scaled(value *intstrutil.IntOrString, otherwise int32) int {
	desired := 0
	for _, node := range p.nodes {
		if p.where[node.Name].shouldRun {
			desired++
		}
	}
	n, err := intstrutil.GetScaledValueFromIntOrPercent(intstrutil.ValueOrDefault(value, intstrutil.FromInt32(otherwise)), desired, true)
	if err != nil {
		return int(otherwise)
	}
	return n
}

// Delays between replacements of failed daemons of one node.
const (
	failureBase = time.Second
	failureMax  = 15 * time.Minute
)

type failureKey struct{ set, node string }

// failure is how often the daemon of a node failed, and until when the next replacement waits.
type failure struct {
	delay time.Duration
	until time.Time
}

// replaceFinished tells whether a finished daemon may be removed now, so that another one is made in its place.
func (p *plan) replaceFinished(pod *corev1.Pod, node string) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		p.c.recorder.Eventf(p.cached, corev1.EventTypeNormal, "SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it", pod.Namespace, pod.Name, node)
		return true
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	now, key := p.c.clock.Now(), failureKey{p.key, node}
	f := p.c.failures[key]
	if f == nil || now.Sub(f.until) > 2*failureMax {
		f = &failure{}
		p.c.failures[key] = f
	}
	if now.Before(f.until) {
		p.c.AddAfter(p.key, f.until.Sub(now))
		return false
	}
	f.delay = min(max(2*f.delay, failureBase), failureMax)
	f.until = now.Add(f.delay)
	p.c.recorder.Eventf(p.cached, corev1.EventTypeWarning, "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it", pod.Namespace, pod.Name, node)
	return true
}

func (c *Controller) forgetFailures(set string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.failures {
		if strings.EqualFold(key.set, set) {
			delete(c.failures, key)
		}
	}
}
