package controller

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Neighbourhood tells where pods stand, for removing those first that stand closest together.
type Neighbourhood struct {
	// Related are all active pods that serve the same purpose, for instance those of all ReplicaSets of one Deployment.
	Related []*corev1.Pod
	// Zone gives a node's topology zone, or "".
	Zone func(node string) string
}

// candidate is a pod with what its place in the order depends on.
type candidate struct {
	pod             *corev1.Pod
	assigned        bool
	phase           int
	ready           bool
	cost            int64
	onNode, inZone  int // how manyth pod of the set it would be on its node and in its zone
	readySince      time.Time
	restarts, extra int32
	created         time.Time
}

// RankForDeletion sorts pods by who goes first. The criteria, each only between pods that are equal in those before it:
// not assigned to a node; Pending, then Unknown, then Running; not ready; lower controller.kubernetes.io/pod-deletion-cost; more pods of the set
// on the same node, then in the same zone; ready for a shorter time; more restarts; younger. Times are compared by order of magnitude (powers of
// two, KEP-2185), and the UID decides what is then still equal, so that pods of different ages are picked evenly.
//
// A pod's number on its node is its position among the set's pods there, the longest-serving one being number 1. Removing the highest numbers
// first evens out the nodes: of 6 pods, 2 in each of 3 zones, 3 removals leave one in each.
func RankForDeletion(pods []*corev1.Pod, around Neighbourhood, now time.Time) []*corev1.Pod {
	candidates := make([]*candidate, len(pods))
	for i, pod := range pods {
		candidates[i] = newCandidate(pod)
	}
	byOwnMerit := func(a, b *candidate) int {
		return cmp.Or(a.compareState(b), a.compareHistory(b, now), cmp.Compare(a.pod.UID, b.pod.UID))
	}
	slices.SortFunc(candidates, byOwnMerit)
	around.number(candidates)
	slices.SortStableFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(a.compareState(b), cmp.Compare(b.onNode, a.onNode), cmp.Compare(b.inZone, a.inZone), byOwnMerit(a, b))
	})
	ranked := make([]*corev1.Pod, len(candidates))
	for i, c := range candidates {
		ranked[i] = c.pod
	}
	return ranked
}

func newCandidate(pod *corev1.Pod) *candidate {
	c := &candidate{pod: pod, assigned: pod.Spec.NodeName != "", phase: phaseOrder(pod.Status.Phase), created: pod.CreationTimestamp.Time}
	if cond := PodCondition(pod, corev1.PodReady); cond != nil && cond.Status == corev1.ConditionTrue {
		c.ready, c.readySince = true, cond.LastTransitionTime.Time
	}
	c.cost, _ = PodDeletionCost(pod)
	c.restarts, c.extra = PodRestarts(pod)
	return c
}

func phaseOrder(phase corev1.PodPhase) int {
	switch phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	}
	return 0
}

// PodDeletionCost reads the annotation controller.kubernetes.io/pod-deletion-cost: an int32, 0 if it is absent or not a number.
func PodDeletionCost(pod *corev1.Pod) (int64, error) {
	value, found := pod.Annotations[corev1.PodDeletionCost]
	if !found {
		return 0, nil
	}
	return strconv.ParseInt(value, 10, 32)
}

func (c *candidate) compareState(o *candidate) int {
	return cmp.Or(
		compareBool(c.assigned, o.assigned),
		cmp.Compare(c.phase, o.phase),
		compareBool(c.ready, o.ready),
		cmp.Compare(c.cost, o.cost))
}

func (c *candidate) compareHistory(o *candidate, now time.Time) int {
	return cmp.Or(
		compareAge(c.readySince, o.readySince, now),
		cmp.Compare(o.restarts, c.restarts),
		cmp.Compare(o.extra, c.extra),
		compareAge(c.created, o.created, now))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareAge puts the younger one first, by order of magnitude. An unknown time counts as the youngest.
func compareAge(a, b, now time.Time) int {
	if a.IsZero() || b.IsZero() {
		return compareBool(!a.IsZero(), !b.IsZero())
	}
	return cmp.Compare(magnitude(now.Sub(a)), magnitude(now.Sub(b)))
}

func magnitude(age time.Duration) int {
	if age < 1 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

// number gives the candidates their places on nodes and in zones. Candidates come in the order in which they would go, so the
// last of each node is its number 1. Related pods that are no candidates stay, and so stand before them.
func (n Neighbourhood) number(candidates []*candidate) {
	own := make(map[*corev1.Pod]bool, len(candidates))
	for _, c := range candidates {
		own[c.pod] = true
	}
	nodes, zones := map[string]int{}, map[string]int{}
	for _, pod := range n.Related {
		if node := pod.Spec.NodeName; node != "" && !own[pod] && IsPodActive(pod) {
			nodes[node]++
			zones[n.zone(node)]++
		}
	}
	for _, c := range slices.Backward(candidates) {
		if node := c.pod.Spec.NodeName; node != "" {
			nodes[node]++
			zones[n.zone(node)]++
			c.onNode, c.inZone = nodes[node], zones[n.zone(node)]
		}
	}
}

func (n Neighbourhood) zone(node string) string {
	if n.Zone == nil {
		return ""
	}
	return n.Zone(node)
}
