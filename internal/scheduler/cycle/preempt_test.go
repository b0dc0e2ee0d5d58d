package cycle_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// refCandidate is what the reference finds for one node.
type refCandidate struct {
	node       string
	victims    []string
	violations int
	// harm is by what candidates are compared, less is better.
	harm [5]int64
}

func refPriority(p *v1.Pod) int64 { return int64(*p.Spec.Priority) }

func byImportance(a, b *v1.Pod) int {
	return cmp.Or(cmp.Compare(refPriority(b), refPriority(a)), a.Status.StartTime.Compare(b.Status.StartTime.Time),
		cmp.Compare(a.UID, b.UID))
}

// without returns the world with some pods gone.
func (w *world) without(gone map[*v1.Pod]bool) *world {
	out := *w
	out.pods = slices.DeleteFunc(slices.Clone(w.pods), func(p *v1.Pod) bool { return gone[p] })
	return &out
}

// violating splits off the pods whose disruption a budget does not allow, in the order of importance.
func violating(pods []*v1.Pod, budgets []*policyv1.PodDisruptionBudget) map[*v1.Pod]bool {
	out, left := map[*v1.Pod]bool{}, map[*policyv1.PodDisruptionBudget]int32{}
	for _, b := range budgets {
		left[b] = b.Status.DisruptionsAllowed
	}
	for _, p := range pods {
		for _, b := range budgets {
			if b.Namespace == p.Namespace && selects(b.Spec.Selector, p.Labels) {
				left[b]--
				out[p] = out[p] || left[b] < 0
			}
		}
	}
	return out
}

// candidate reads the rules plainly: take out every pod of lower priority, put back as many as possible, first those
// whose budget would be violated.
func (w *world) candidate(p *v1.Pod, node string, budgets []*policyv1.PodDisruptionBudget) *refCandidate {
	var lower []*v1.Pod
	gone := map[*v1.Pod]bool{}
	for _, other := range w.on(node) {
		if refPriority(other) < refPriority(p) {
			lower = append(lower, other)
			gone[other] = true
		}
	}
	fits := func() bool { return w.without(gone).decide(p)[node].plugin == "" }
	if len(lower) == 0 || !fits() {
		return nil
	}
	slices.SortFunc(lower, byImportance)
	bad := violating(lower, budgets)
	c := &refCandidate{node: node}
	var victims []*v1.Pod
	for _, first := range []bool{true, false} {
		for _, other := range lower {
			if bad[other] != first {
				continue
			}
			delete(gone, other)
			if fits() {
				continue
			}
			gone[other] = true
			victims = append(victims, other)
			if first {
				c.violations++
			}
		}
	}
	slices.SortFunc(victims, byImportance)
	c.measure(victims)
	return c
}

func (c *refCandidate) measure(victims []*v1.Pod) {
	c.harm = [5]int64{int64(c.violations), math.MinInt64, 0, int64(len(victims)), math.MinInt64}
	for i, p := range victims {
		c.victims = append(c.victims, string(p.UID))
		c.harm[2] += refPriority(p) + math.MaxInt32 + 1
		if i == 0 {
			c.harm[1], c.harm[4] = refPriority(p), -p.Status.StartTime.UnixNano()
		}
	}
}

// preempt returns the best candidates: those that nothing distinguishes.
func (w *world) preempt(p *v1.Pod, budgets []*policyv1.PodDisruptionBudget) (best []*refCandidate, tried int) {
	for node, verdict := range w.decide(p) {
		if verdict.unresolvable {
			continue
		}
		tried++
		c := w.candidate(p, node, budgets)
		if c == nil {
			continue
		}
		switch order := slices.Compare(c.harm[:], harmOf(best)); {
		case order < 0:
			best = []*refCandidate{c}
		case order == 0:
			best = append(best, c)
		}
	}
	return best, tried
}

func harmOf(best []*refCandidate) []int64 {
	if len(best) == 0 {
		return []int64{math.MaxInt64}
	}
	return best[0].harm[:]
}

// fill puts pods of all priorities on the nodes, whether they fit or not.
func (h *harness) fill() []*policyv1.PodDisruptionBudget {
	for range 40 {
		p := h.m.pod()
		priority := int32(h.m.IntN(3) * 10)
		p.Spec.Priority = &priority
		start := metav1.Unix(1e9-int64(h.m.IntN(2)), 0)
		p.Status.StartTime = &start
		h.addPod(p, h.w.nodes[h.m.IntN(len(h.w.nodes))].Name)
	}
	var budgets []*policyv1.PodDisruptionBudget
	for i := range 2 + h.m.IntN(5) {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("budget", i), Namespace: h.m.name("ns", 3)}}
		b.Spec.Selector = labelSelector(map[string]string{"app": h.m.name("app", 4)})
		b.Status.DisruptionsAllowed = int32(max(0, h.m.IntN(4)-2))
		budgets = append(budgets, b)
		h.core.Ledger.SetBudget(&ledger.Budget{
			Namespace: b.Namespace, Name: b.Name, Selector: labels.SelectorFromSet(b.Spec.Selector.MatchLabels),
			Allowed: b.Status.DisruptionsAllowed,
		})
	}
	return budgets
}

// TestPreemptionAgreesWithReference compares node and victims, and sees to it that looking leaves no trace.
func TestPreemptionAgreesWithReference(t *testing.T) {
	outcomes := map[string]int{}
	for world := range *worldsFlag {
		h := newHarness(t, *seedFlag+uint64(world)+5000)
		budgets := h.fill()
		for range 12 {
			p := h.m.pod()
			priority := int32(h.m.IntN(5) * 10)
			p.Spec.Priority = &priority
			h.comparePreemption(p, budgets, outcomes)
			if t.Failed() {
				t.Fatalf("seed %d, pod %s of priority %d", *seedFlag+uint64(world), podName(p), priority)
			}
		}
	}
	t.Logf("outcomes: %v", outcomes)
	for _, outcome := range []string{"helps", "helps nowhere", "violates a budget", "several equals", "several victims"} {
		if outcomes[outcome] < 3 {
			t.Errorf("%q came only %d times: the clusters are too dull", outcome, outcomes[outcome])
		}
	}
}

func (h *harness) comparePreemption(p *v1.Pod, budgets []*policyv1.PodDisruptionBudget, outcomes map[string]int) {
	h.t.Helper()
	for _, verdict := range h.w.decide(p) {
		if verdict.plugin == "" {
			return
		}
	}
	engine, l := h.core.Engine(""), h.core.Ledger
	s := l.Shapes.Compile(p)
	defer l.Shapes.Release(s)
	pod := &cycle.Pod{UID: p.UID, Shape: s, Priority: *p.Spec.Priority}
	best, tried := h.w.preempt(p, budgets)
	got := engine.Preempt(pod, false)
	if got.Considered != tried {
		h.t.Errorf("considered %d nodes, want %d", got.Considered, tried)
	}
	h.compareNodes(engine.Examine(pod), h.w.decide(p), map[string]int{})
	if len(best) == 0 {
		outcomes["helps nowhere"]++
		if got.Node != "" {
			h.t.Errorf("preempts %v on %s, but that does not help", got.Victims, got.Node)
		}
		return
	}
	outcomes["helps"]++
	var victims []string
	for _, victim := range got.Victims {
		victims = append(victims, string(victim.UID))
	}
	at := slices.IndexFunc(best, func(c *refCandidate) bool { return c.node == got.Node })
	if at < 0 || !slices.Equal(best[at].victims, victims) || best[at].violations != got.Violations {
		h.t.Errorf("preempts %v on %q, %d budgets violated; want one of:", victims, got.Node, got.Violations)
		for _, c := range best {
			h.t.Errorf("  %v on %s, %d", c.victims, c.node, c.violations)
		}
		return
	}
	for outcome, is := range map[string]bool{
		"violates a budget": got.Violations > 0, "several equals": len(best) > 1, "several victims": len(victims) > 1,
	} {
		if is {
			outcomes[outcome]++
		}
	}
}
