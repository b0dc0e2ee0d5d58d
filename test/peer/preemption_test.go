package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evictionTally counts what the preemptions were like.
type evictionTally struct {
	asked, refused, helpless, evictions int
	// budgeted are those of them with budgets and several candidates to choose from, violating those that violate a budget
	// on some candidate, tied those where several candidates were equally good.
	budgeted, violating, tied int
}

// TestPreemption compares what both evict for pods that no node takes.
func TestPreemption(t *testing.T) {
	counts := &evictionTally{}
	for world := *seed; counts.evictions < *evictions; world++ {
		evict(t, world, counts)
	}
	t.Logf("%+v", *counts)
	if share := float64(counts.budgeted) / float64(counts.evictions); share < 1.0/3 {
		t.Errorf("%.2f of the preemptions have budgets and several candidates, want a third", share)
	}
	for what, n := range map[string]int{"refused": counts.refused, "helpless": counts.helpless, "violating": counts.violating, "tied": counts.tied} {
		if n < counts.evictions/100 {
			t.Errorf("%d of %d preemptions are %s, too few to show anything", n, counts.asked, what)
		}
	}
}

// resident makes a pod of a crowd: many are alike.
func (m *maker) resident() *v1.Pod {
	p := m.pod()
	if m.chance(60) {
		priority := int32(0)
		p.Spec.Priority = &priority
		p.Spec.Containers, p.Spec.InitContainers, p.Spec.Resources = p.Spec.Containers[:1], nil, nil
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: milli(1000), v1.ResourceMemory: amount(1 << 30)}
	}
	return p
}

// crowd makes a world that has little room left.
func (m *maker) crowd(w *world) {
	m.easy = true
	for i := range 3 {
		w.setNamespace(fmt.Sprintf("ns%d", i), map[string]string{"team": m.word("team", 2)})
	}
	for i := range 3 + m.IntN(5) {
		w.setNode(m.node(fmt.Sprintf("node%d", i)))
	}
	if m.chance(75) {
		for i := range 1 + m.IntN(4) {
			w.setBudget(m.budget(fmt.Sprintf("budget%d", i)))
		}
	}
	for range len(w.nodes) * (4 + m.IntN(5)) {
		w.addPod(m.old(w, m.running(m.resident(), m.nodeOf(w))))
	}
}

// old lets a pod have started at one of few times, so that nodes can be equally good, but never at that of another pod of
// its node: among those the reference's order would be that of a map.
func (m *maker) old(w *world, p *v1.Pod) *v1.Pod {
	taken := map[int64]bool{}
	for _, other := range w.pods {
		if other.Spec.NodeName == p.Spec.NodeName {
			taken[other.Status.StartTime.Unix()] = true
		}
	}
	at := w.now.Unix() - int64(m.IntN(2))
	for taken[at] {
		at--
	}
	p.Status.StartTime = &metav1.Time{Time: time.Unix(at, 0)}
	return p
}

// budget makes a PodDisruptionBudget that is often used up.
func (m *maker) budget(name string) *policyv1.PodDisruptionBudget {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.word("app", 4)}}
	switch m.IntN(4) {
	case 0:
		selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": m.word("tier", 2)}}
	case 1:
		selector = &metav1.LabelSelector{}
	}
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.word("ns", 3), Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(m.IntN(3))},
	}
	if m.chance(20) {
		b.Status.DisruptedPods = map[string]metav1.Time{m.word("pod", 30): {}}
	}
	return b
}

// demanding makes a pod that is likely to need room.
func (m *maker) demanding(w *world) *v1.Pod {
	p := m.pod()
	priority := int32(pick(m, 1000, 1000, 100, 10, 2000))
	p.Spec.Priority = &priority
	requests := p.Spec.Containers[0].Resources.Requests
	requests[v1.ResourceCPU] = milli(500 * (1 + m.IntN(8)))
	if m.chance(40) {
		requests[v1.ResourceMemory] = amount(int64(1+m.IntN(8)) << 30)
	}
	if m.chance(10) {
		p.Status.NominatedNodeName = m.nodeOf(w)
	}
	if m.chance(4) {
		never := v1.PreemptNever
		p.Spec.PreemptionPolicy = &never
	}
	return p
}

// leave has a pod begin to go, often because it was preempted.
func (m *maker) leave(w *world) {
	w.updatePod(m.IntN(len(w.pods)), func(p *v1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: w.now}
		p.Status.Conditions = []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: pick(m, v1.PodReasonPreemptionByScheduler, v1.PodReasonPreemptionByScheduler, "EvictionByEvictionAPI"),
		}}
	})
}

// leaving reports whether a pod of the namespace is about to go. kube-scheduler does not count it for topology spread, but
// takes one off when it tries what its removal would do, so that it evicts pods which do not make room. Bayplan does not.
func (w *world) leaving(namespace string) bool {
	return slices.ContainsFunc(w.pods, func(p *v1.Pod) bool { return p.Namespace == namespace && p.DeletionTimestamp != nil })
}

// evict compares the preemptions of one world.
func evict(t *testing.T, seed uint64, counts *evictionTally) {
	w, err := newWorld(t.Context())
	must(err)
	m := newMaker(seed)
	m.crowd(w)
	var nominated *v1.Pod
	for i := range perWorld {
		if m.chance(30) && len(w.pods) > 0 {
			m.leave(w)
		}
		if nominated != nil {
			w.nominate(nominated, "")
			nominated = nil
		}
		pod := m.demanding(w)
		if w.leaving(pod.Namespace) {
			pod.Spec.TopologySpreadConstraints = nil
		}
		if m.chance(15) && !countsNobody(pod) {
			nominated = m.pod()
			w.nominate(nominated, m.nodeOf(w))
		}
		where := fmt.Sprintf("seed %d, preemption %d", seed, i)
		trial, differences, err := w.compare(pod)
		if err != nil {
			t.Fatalf("%s: the reference fails: %v", where, err)
		}
		if len(differences) > 0 {
			w.fail(t, where, pod, differences)
		}
		if trial.verdict.chosen != "" {
			w.addPod(m.old(w, m.running(pod, trial.verdict.chosen)))
			continue
		}
		outcome, differences, err := w.comparePreemption(trial)
		if err != nil {
			t.Fatalf("%s: the reference fails: %v", where, err)
		}
		if len(differences) > 0 {
			w.fail(t, where, pod, differences)
		}
		counts.count(w, outcome)
		w.make(m, pod, outcome.found)
	}
}

// make lets one preemption happen, so that the world goes on.
func (w *world) make(m *maker, pod *v1.Pod, found []candidate) {
	if len(found) == 0 {
		return
	}
	choice := found[m.IntN(len(found))]
	for _, name := range choice.victims {
		w.deletePod(slices.IndexFunc(w.pods, func(p *v1.Pod) bool { return p.Name == name }))
	}
	w.addPod(m.old(w, m.running(pod, choice.node)))
	for range len(choice.victims) {
		w.addPod(m.old(w, m.running(m.resident(), m.nodeOf(w))))
	}
}

func (c *evictionTally) count(w *world, p preemption) {
	c.asked++
	switch {
	case p.refused:
		c.refused++
		return
	case len(p.found) == 0:
		c.helpless++
		return
	}
	c.evictions++
	if len(p.found) > 1 && len(w.budgets) > 0 {
		c.budgeted++
	}
	if slices.ContainsFunc(p.found, func(f candidate) bool { return f.rank.violations > 0 }) {
		c.violating++
	}
	if slices.ContainsFunc(p.found, func(f candidate) bool { return f.node != p.chosen.node && f.rank == p.chosen.rank }) {
		c.tied++
	}
}
