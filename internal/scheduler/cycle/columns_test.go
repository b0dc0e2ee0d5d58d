package cycle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "seed of the random clusters")
	worldsFlag = flag.Int("worlds", 40, "number of random clusters")
)

// harness keeps a world of objects and a core in step.
type harness struct {
	t    *testing.T
	m    *maker
	w    *world
	core *core.Core
	now  time.Time
}

func newHarness(t *testing.T, seed uint64) *harness {
	h := &harness{
		t: t, m: &maker{Rand: rand.New(rand.NewPCG(seed, 7))}, now: time.Unix(1e9, 0),
		w: &world{namespaces: map[string]map[string]string{}},
		core: core.New(core.Config{
			Profiles: []core.Profile{{SchedulerName: "", Plugins: plugins.Default()}}, Cycle: cycle.Options{Seed: seed},
		}),
	}
	for i := range 3 {
		name, set := fmt.Sprintf("ns%d", i), map[string]string{"team": h.m.name("team", 2)}
		h.w.namespaces[name] = set
		h.core.SetNamespace(name, set, h.now)
	}
	for range 2 {
		s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: h.m.name("svc", 3), Namespace: h.m.name("ns", 3)}}
		s.Spec.Selector = map[string]string{"app": h.m.name("app", 4)}
		h.w.services = slices.DeleteFunc(h.w.services, func(o *v1.Service) bool { return o.Name == s.Name && o.Namespace == s.Namespace })
		h.w.services = append(h.w.services, s)
		h.core.Ledger.SetService(s.Namespace, s.Name, s.Spec.Selector)
	}
	for i := range 3 + h.m.IntN(10) {
		h.setNode(h.m.node(fmt.Sprintf("node%d", i)))
	}
	return h
}

func (h *harness) setNode(n *v1.Node) {
	at := slices.IndexFunc(h.w.nodes, func(o *v1.Node) bool { return o.Name == n.Name })
	if at < 0 {
		h.w.nodes = append(h.w.nodes, n)
	} else {
		h.w.nodes[at] = n
	}
	h.core.SetNode(n, h.now)
}

func (h *harness) addPod(p *v1.Pod, node string) {
	p.Spec.NodeName = node
	h.w.pods = append(h.w.pods, p)
	h.core.SetPod(p, h.now)
}

// shake changes the cluster a little: pods go or begin to, nodes change, go or come back.
func (h *harness) shake() {
	switch h.m.IntN(8) {
	case 0, 1:
		if len(h.w.pods) > 0 {
			i := h.m.IntN(len(h.w.pods))
			h.core.DeletePod(h.w.pods[i].UID, h.now)
			h.w.pods = slices.Delete(h.w.pods, i, i+1)
		}
	case 2:
		if len(h.w.pods) > 0 {
			i := h.m.IntN(len(h.w.pods))
			gone := h.w.pods[i].DeepCopy()
			gone.DeletionTimestamp = &metav1.Time{Time: h.now}
			h.w.pods[i] = gone
			h.core.SetPod(gone, h.now)
		}
	case 3:
		h.setNode(h.m.node(h.w.nodes[h.m.IntN(len(h.w.nodes))].Name))
	case 4:
		if len(h.w.nodes) > 2 && h.m.chance(30) {
			i := h.m.IntN(len(h.w.nodes))
			h.core.DeleteNode(h.w.nodes[i].Name, h.now)
			h.w.nodes = slices.Delete(h.w.nodes, i, i+1)
		} else {
			h.setNode(h.m.node(h.m.name("node", 14)))
		}
	}
}

// TestColumnsAgreeWithReference compares every node's verdict and scores of random pods in random clusters that change,
// with shapes that are new and that were known before the change.
func TestColumnsAgreeWithReference(t *testing.T) {
	stats := map[string]int{}
	for world := range *worldsFlag {
		h := newHarness(t, *seedFlag+uint64(world))
		var known []*v1.Pod
		for range 40 {
			p := h.m.pod()
			if len(known) > 0 && h.m.chance(60) {
				again := known[h.m.IntN(len(known))].DeepCopy()
				again.Name, again.UID, again.Spec.NodeName = p.Name, p.UID, ""
				p = again
			}
			known = append(known, p.DeepCopy())
			h.compare(p, stats)
			if t.Failed() {
				t.Fatalf("seed %d, pod %s", *seedFlag+uint64(world), podName(p))
			}
			h.shake()
		}
	}
	t.Logf("decisions by outcome of nodes: %v", stats)
	for _, name := range []string{
		"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread",
		"InterPodAffinity", "feasible",
	} {
		if stats[name] < 20 {
			t.Errorf("%s decided only %d times: the clusters are too dull", name, stats[name])
		}
	}
}

// compare puts a pod before both, and places it where the engine says.
func (h *harness) compare(p *v1.Pod, stats map[string]int) {
	h.t.Helper()
	engine, l := h.core.Engine(""), h.core.Ledger
	s := l.Shapes.Compile(p)
	defer l.Shapes.Release(s)
	pod := &cycle.Pod{UID: p.UID, Shape: s}
	want := h.w.decide(p)
	h.compareNodes(engine.Examine(pod), want, stats)
	h.compareDecision(engine.Decide(pod), want)
	diagnosis := engine.Diagnose(pod)
	if decision := engine.Decide(pod); decision.Slot != ledger.None {
		h.addPod(p, l.NodeName(decision.Slot))
		return
	}
	sum := 0
	for _, r := range diagnosis.Rejections {
		sum += r.Nodes
	}
	if sum != len(h.w.nodes) {
		h.t.Errorf("the diagnosis counts %d nodes of %d: %+v", sum, len(h.w.nodes), diagnosis.Rejections)
	}
}

func (h *harness) compareNodes(x *cycle.Examination, want map[string]*verdict, stats map[string]int) {
	h.t.Helper()
	if len(x.Nodes) != len(want) {
		h.t.Errorf("examined %d nodes, want %d", len(x.Nodes), len(want))
	}
	for _, got := range x.Nodes {
		ref := want[got.Node]
		if got.Rejected != nil {
			stats[got.Rejected.Plugin]++
			reasons := slices.Sorted(slices.Values(got.Rejected.Reasons))
			if got.Rejected.Plugin != ref.plugin || strings.Join(reasons, ",") != ref.reasons ||
				(got.Rejected.Verdict == plugin.Unresolvable) != ref.unresolvable {
				h.t.Errorf("node %s: rejected by %+v, want %+v", got.Node, *got.Rejected, *ref)
			}
			continue
		}
		stats["feasible"]++
		if ref.plugin != "" {
			h.t.Errorf("node %s: feasible, want %+v", got.Node, *ref)
			continue
		}
		for i, part := range got.Parts {
			name := x.Plugins[i].Name
			if r := ref.parts[name]; r[0] != part.Raw || r[1] != part.Normalized {
				h.t.Errorf("node %s: %s is %d raw, %d normalised; want %v", got.Node, name, part.Raw, part.Normalized, r)
			}
		}
		if got.Total != ref.total {
			h.t.Errorf("node %s: total %d, want %d", got.Node, got.Total, ref.total)
		}
	}
}

func (h *harness) compareDecision(d cycle.Decision, want map[string]*verdict) {
	h.t.Helper()
	feasible, top := 0, int64(-1)
	for _, ref := range want {
		if ref.plugin == "" {
			feasible, top = feasible+1, max(top, ref.total)
		}
	}
	if d.Feasible != feasible {
		h.t.Errorf("%d nodes are feasible, want %d", d.Feasible, feasible)
		return
	}
	if feasible == 0 {
		return
	}
	chosen := want[h.core.Ledger.NodeName(d.Slot)]
	if feasible > 1 && (chosen.total != top || d.Score != top) {
		h.t.Errorf("chose a node of total %d and says %d, the highest is %d", chosen.total, d.Score, top)
	}
}
