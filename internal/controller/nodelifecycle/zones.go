package nodelifecycle

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How fast pods are removed from the nodes of a zone. A zone in which most nodes are silent has more likely lost its network than its nodes.
const (
	normalInterval  = 10 * time.Second  // between two nodes of a healthy zone
	partialInterval = 100 * time.Second // when more than unhealthyShare of a large zone is silent
	unhealthyShare  = 0.55
	largeZone       = 50
)

// zones knows which nodes are ready, by zone, and paces the evictions.
type zones struct {
	mu    sync.Mutex
	nodes map[string]member
	last  map[string]time.Time // the last node of each zone that was admitted
}

type member struct {
	zone  string
	ready bool
}

func newZones() *zones { return &zones{nodes: map[string]member{}, last: map[string]time.Time{}} }

// note takes up the state of a node and tells whether it changed.
func (z *zones) note(node *corev1.Node) bool {
	zone := node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone]
	now := member{zone, conditionOf(node, corev1.NodeReady).Status == corev1.ConditionTrue}
	z.mu.Lock()
	defer z.mu.Unlock()
	before, known := z.nodes[node.Name]
	z.nodes[node.Name] = now
	return !known || before != now
}

func (z *zones) remove(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.nodes, name)
}

func (z *zones) disrupted() (names []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for name, m := range z.nodes {
		if !m.ready {
			names = append(names, name)
		}
	}
	return names
}

// anyReady tells whether at least one node of the cluster is heard of.
func (z *zones) anyReady() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, m := range z.nodes {
		if m.ready {
			return true
		}
	}
	return false
}

// admit tells whether pods may be removed from a node now, or after what time to ask again; with no time, only a change of some node
// can help. When no node of the whole cluster is ready, it is this process that is cut off, and nothing
// is removed.
func (z *zones) admit(node *corev1.Node, now time.Time) (bool, time.Duration) {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.nodes[node.Name].zone
	total, silent, anyReady := 0, 0, false
	for _, m := range z.nodes {
		anyReady = anyReady || m.ready
		if m.zone == zone {
			total++
			if !m.ready {
				silent++
			}
		}
	}
	if !anyReady {
		return false, 0
	}
	interval := normalInterval
	// A zone that is silent as a whole is gone, others are there: its pods are needed elsewhere at the normal rate.
	if silent < total && silent > 2 && float64(silent) >= unhealthyShare*float64(total) {
		if total <= largeZone {
			return false, 0
		}
		interval = partialInterval
	}
	if wait := z.last[zone].Add(interval).Sub(now); wait > 0 {
		return false, wait
	}
	z.last[zone] = now
	return true, 0
}
