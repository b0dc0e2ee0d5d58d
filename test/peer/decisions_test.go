package peer

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"sigs.k8s.io/yaml"
)

var (
	seed      = flag.Uint64("seed", 1, "the first world's seed; each world has the next one")
	decisions = flag.Int("decisions", 20000, "how many decisions to compare")
	evictions = flag.Int("evictions", 2000, "how many preemptions to compare")
)

// perWorld is how many pods are decided on in one world before there is another.
const perWorld = 40

// populate makes a world's first nodes, pods, namespaces, services and budgets.
func (m *maker) populate(w *world) {
	for i := range 3 {
		w.setNamespace(fmt.Sprintf("ns%d", i), map[string]string{"team": m.word("team", 2)})
	}
	for i := range m.IntN(3) {
		w.setService(m.word("ns", 3), fmt.Sprintf("svc%d", i), map[string]string{"app": m.word("app", 4)})
	}
	for i := range m.IntN(3) {
		w.setReplicaSet(m.word("ns", 3), fmt.Sprintf("rs%d", i), &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.word("app", 4)}})
	}
	for i := range 4 + m.IntN(10) {
		w.setNode(m.node(fmt.Sprintf("node%d", i)))
		w.setCSINode(m.csiNode(fmt.Sprintf("node%d", i)))
		if m.chance(20) {
			w.setAttachment(m.attachment(i, fmt.Sprintf("node%d", i)))
		}
	}
	m.storage(w)
	for range m.IntN(len(w.nodes) * 4) {
		w.addPod(m.running(m.pod(), m.nodeOf(w)))
	}
}

// nodeOf names a node, mostly one that there is.
func (m *maker) nodeOf(w *world) string {
	if len(w.nodes) == 0 || m.chance(2) {
		return m.word("node", 14)
	}
	return pick(m, slices.Sorted(maps.Keys(w.nodes))...)
}

// happen lets something change.
func (m *maker) happen(w *world) {
	name := m.nodeOf(w)
	switch m.IntN(15) {
	case 0:
		w.setNode(m.node(name))
	case 1:
		if w.nodes[name] != nil && len(w.nodes) > 2 {
			w.deleteNode(name)
		}
	case 2:
		w.setNode(m.node(m.word("node", 12)))
	case 3, 4:
		if len(w.pods) > 0 {
			w.deletePod(m.IntN(len(w.pods)))
		}
	case 5:
		if len(w.pods) > 0 {
			w.updatePod(m.IntN(len(w.pods)), func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: w.now} })
		}
	case 6:
		if len(w.pods) > 0 {
			w.updatePod(m.IntN(len(w.pods)), func(p *v1.Pod) { p.Labels = map[string]string{"app": m.word("app", 4)} })
		}
	case 7:
		w.setNamespace(m.word("ns", 3), map[string]string{"team": m.word("team", 2)})
	case 8:
		w.setService(m.word("ns", 3), m.word("svc", 3), map[string]string{"tier": m.word("tier", 2)})
	case 9:
		w.setClaim(m.claim(m.word("ns", 3), m.word("claim", nClaims)))
	case 10:
		w.setVolume(m.volume(m.IntN(12)))
	case 11:
		w.setCSINode(m.csiNode(name))
	default:
		w.addPod(m.running(m.pod(), name))
	}
}

// candidatePod makes the pod to be decided on. A few have spec.nodeName already or are nominated.
func (m *maker) candidatePod(w *world) *v1.Pod {
	p := m.pod()
	switch {
	case m.chance(9):
		p.Spec.NodeName = m.nodeOf(w)
		if m.chance(15) {
			p.Spec.Affinity = named(pick(m, m.nodeOf(w), p.Spec.NodeName))
		}
	case m.chance(5):
		p.Status.NominatedNodeName = m.nodeOf(w)
	}
	return p
}

// named is the affinity of a pod of a DaemonSet.
func named(node string) *v1.Affinity {
	terms := []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}},
	}}}
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

// tally counts what the decisions were like: a comparison in which nothing happens shows nothing.
type tally struct {
	decisions, contested int
	plugins, reasons     map[string]int
}

func newTally() *tally { return &tally{plugins: map[string]int{}, reasons: map[string]int{}} }

func (t *tally) count(v *verdict) {
	t.decisions++
	if v.totals() > 1 {
		t.contested++
	}
	seen := map[string]bool{}
	for _, r := range v.rejected {
		seen[r.plugin] = true
		for _, reason := range strings.Split(r.reasons, "; ") {
			t.reasons[quoted.ReplaceAllString(reason, "...")]++
		}
	}
	for name := range seen {
		t.plugins[name]++
	}
}

func TestDecisions(t *testing.T) {
	counts := newTally()
	for world := *seed; counts.decisions < *decisions; world++ {
		decide(t, world, counts)
	}
	counts.report(t)
}

// decide compares the decisions of one world.
func decide(t *testing.T, seed uint64, counts *tally) {
	w, err := newWorld(t.Context())
	must(err)
	m := newMaker(seed)
	m.populate(w)
	var nominated *v1.Pod
	for i := range perWorld {
		for range m.IntN(3) {
			m.happen(w)
		}
		if nominated != nil {
			w.nominate(nominated, "")
			nominated = nil
		}
		pod := m.candidatePod(w)
		if m.chance(15) && !countsNobody(pod) {
			nominated = m.pod()
			w.nominate(nominated, m.nodeOf(w))
		}
		trial, differences, err := w.compare(pod)
		if err != nil {
			t.Fatalf("seed %d, decision %d: the reference fails: %v", seed, i, err)
		}
		if len(differences) > 0 {
			w.fail(t, fmt.Sprintf("seed %d, decision %d", seed, i), pod, differences)
		}
		counts.count(trial.verdict)
		if trial.verdict.chosen != "" && m.chance(80) {
			w.addPod(m.running(pod, trial.verdict.chosen))
		}
	}
}

// countsNobody reports whether a spread constraint has an empty selector. kube-scheduler counts no pods for it, except
// those that it adds or removes for nominations and preemption.
func countsNobody(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c v1.TopologySpreadConstraint) bool {
		s := c.LabelSelector
		return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
	})
}

// fail shows a difference with everything needed to make a case of it.
func (w *world) fail(t *testing.T, where string, pod *v1.Pod, differences []string) {
	t.Helper()
	for _, line := range differences {
		t.Errorf("%s: %s", where, line)
	}
	if testing.Verbose() {
		w.show(t, pod)
	}
	t.FailNow()
}

func (w *world) show(t *testing.T, pod *v1.Pod) {
	print := func(what string, object any) {
		text, err := yaml.Marshal(object)
		must(err)
		t.Logf("%s\n%s", what, text)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		print("node", w.nodes[name])
	}
	for _, p := range w.pods {
		print("has a node", p)
	}
	print("to be decided", pod)
}

// quoted are the names of objects in reasons.
var quoted = regexp.MustCompile(`"[^"]*"`)

// rejectors are the plugins that have to reject often, reasons those that have to be given often.
var (
	rejectors = []string{
		names.NodeName, names.NodeUnschedulable, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit,
		names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone, names.PodTopologySpread,
		names.InterPodAffinity, names.NodeDeclaredFeatures,
	}
	reasons = []string{
		"Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", "Insufficient example.com/gpu",
		"Insufficient hugepages-2Mi", "Too many pods",
		"node(s) didn't have free ports for the requested pod ports", "node(s) didn't match Pod's node affinity/selector",
		"node(s) didn't match pod affinity rules", "node(s) didn't match pod anti-affinity rules",
		"node(s) didn't match pod topology spread constraints",
		"node(s) didn't match pod topology spread constraints (missing required label)",
		"node(s) didn't satisfy existing pods anti-affinity rules",
		"node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously",
		"node(s) didn't satisfy plugin(s) [NodeAffinity NodeName]", "node(s) didn't satisfy plugin(s) [NodeAffinity]",
		"node(s) didn't satisfy plugin(s) [NodeName]", "node(s) had untolerated taint(s)", "node(s) were unschedulable",
		"pod affinity terms conflict",
		"node(s) had no available disk", "node(s) exceed max volume count", needed + " CSI driver is not installed on the node",
		"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
		"node(s) didn't match PersistentVolume's node affinity", "node(s) didn't find available persistent volumes to bind",
		"node(s) did not have enough free storage", "node(s) had no available volume zone",
		"persistentvolumeclaim ... not found", "persistentvolumeclaim ... is being deleted", "persistentvolume ... not found",
		"persistentvolumeclaim ... bound to non-existent persistentvolume ...", "pod has unbound immediate PersistentVolumeClaims",
		"waiting for ephemeral volume controller to create the persistentvolumeclaim ...",
		"node(s) didn't match Pod's required features",
	}
)

// report checks that the comparison was worth something.
func (t *tally) report(tb testing.TB) {
	for _, name := range rejectors {
		share := float64(t.plugins[name]) / float64(t.decisions)
		tb.Logf("%-20s rejects in %4.1f %% of decisions", name, 100*share)
		if share < 0.05 {
			tb.Errorf("%s rejects in %.1f %% of the decisions, want 5 %%", name, 100*share)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(t.reasons)) {
		tb.Logf("%7d  %s", t.reasons[reason], reason)
		if !slices.Contains(reasons, reason) {
			tb.Errorf("the reason %q is not among those that are expected", reason)
		}
	}
	for _, reason := range reasons {
		if want := t.decisions / 200; t.reasons[reason] < want {
			tb.Errorf("the reason %q is given %d times, want %d", reason, t.reasons[reason], want)
		}
	}
	tb.Logf("%d decisions, %d with different totals", t.decisions, t.contested)
	if 2*t.contested < t.decisions {
		tb.Errorf("%d of %d decisions have different totals, want half", t.contested, t.decisions)
	}
}
