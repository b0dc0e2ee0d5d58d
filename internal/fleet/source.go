package fleet

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/life"
	"github.com/bayplan/bayplan/internal/fleet/nodeapi"
)

var _ nodeapi.Source = &Fleet{}

// nodeAt is the node with an address. The caller holds the lock.
func (f *Fleet) nodeAt(address string) *node { return f.nodes[f.byAddress[address]] }

// NodeAt implements nodeapi.Source.
func (f *Fleet) NodeAt(address string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byAddress[address]
}

// Reaches implements nodeapi.Source.
func (f *Fleet) Reaches(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodeAt(address)
	return n != nil && !n.has(v1alpha1.FaultUnreachable)
}

// PodsOf implements nodeapi.Source.
func (f *Fleet) PodsOf(node string) []*corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*corev1.Pod
	for _, p := range f.sorted(node) {
		out = append(out, p.life.API())
	}
	return out
}

// sorted are the pods of a node by namespace and name.
func (f *Fleet) sorted(node string) []*pod {
	n := f.nodes[node]
	if n == nil {
		return nil
	}
	out := make([]*pod, 0, len(n.pods))
	for _, p := range n.pods {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pod) int {
		x, y := a.life.API(), b.life.API()
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// UsageOf implements nodeapi.Source.
func (f *Fleet) UsageOf(node string) []nodeapi.PodUsage {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	var out []nodeapi.PodUsage
	for _, p := range f.sorted(node) {
		if uses := p.life.Usage(now); len(uses) > 0 {
			out = append(out, nodeapi.PodUsage{Pod: p.life.API(), Containers: uses})
		}
	}
	return out
}

// LogOf implements nodeapi.Source.
func (f *Fleet) LogOf(node, namespace, name, container string, previous bool) (life.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.sorted(node) {
		api := p.life.API()
		if api.Namespace != namespace || api.Name != name {
			continue
		}
		log, reason, ok := p.life.Log(container, previous)
		switch {
		case ok:
			return log, nil
		case previous:
			return log, fmt.Errorf("previous terminated container %q in pod %q not found", container, name)
		case reason != "":
			return log, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, name, reason)
		}
		return log, fmt.Errorf("container %q is not valid for pod %q", container, name)
	}
	return life.Log{}, fmt.Errorf("pod %q does not exist on node %q", name, node)
}
