package peer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// world is a cluster that both schedulers are told of.
type world struct {
	now     time.Time
	core    *core.Core
	engine  *cycle.Engine
	ref     *reference
	nodes   map[string]*v1.Node
	pods    []*v1.Pod
	budgets []*policyv1.PodDisruptionBudget
}

func newWorld(ctx context.Context) (*world, error) {
	ref, err := newReference(ctx)
	if err != nil {
		return nil, err
	}
	c := core.New(core.Config{
		Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}},
		Cycle:    cycle.Options{Seed: 1, Oracle: true}, Queue: queue.Options{},
	})
	return &world{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), core: c, engine: c.Engine(v1.DefaultSchedulerName), ref: ref,
		nodes: map[string]*v1.Node{},
	}, nil
}

// must ends the test by a panic: the world is told only what an API server would.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *world) setNode(node *v1.Node) {
	w.core.SetNode(node, w.now)
	if old := w.nodes[node.Name]; old != nil {
		w.ref.cache.UpdateNode(w.ref.log, old, node)
	} else {
		w.ref.cache.AddNode(w.ref.log, node)
	}
	must(w.ref.factory.Core().V1().Nodes().Informer().GetStore().Add(node))
	w.nodes[node.Name] = node
}

func (w *world) deleteNode(name string) {
	w.core.DeleteNode(name, w.now)
	must(w.ref.cache.RemoveNode(w.ref.log, w.nodes[name]))
	must(w.ref.factory.Core().V1().Nodes().Informer().GetStore().Delete(w.nodes[name]))
	delete(w.nodes, name)
}

// addPod adds a pod that has a node. kube-scheduler does not count how many pods of a node have a host port: when one of
// two goes it takes the port for free. So the pod loses its ports if they are taken.
func (w *world) addPod(pod *v1.Pod) {
	if w.portTaken(pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Ports = nil
		}
		for i := range pod.Spec.InitContainers {
			pod.Spec.InitContainers[i].Ports = nil
		}
	}
	w.core.SetPod(pod, w.now)
	must(w.ref.cache.AddPod(w.ref.log, pod))
	w.pods = append(w.pods, pod)
}

func (w *world) portTaken(pod *v1.Pod) bool {
	for _, other := range w.pods {
		for _, a := range hostPorts(other) {
			if other.Spec.NodeName == pod.Spec.NodeName && slices.Contains(hostPorts(pod), a) {
				return true
			}
		}
	}
	return false
}

func hostPorts(pod *v1.Pod) (out []v1.ContainerPort) {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, port := range c.Ports {
			if port.HostIP == "" {
				port.HostIP = "0.0.0.0"
			}
			out = append(out, port)
		}
	}
	return out
}

func (w *world) updatePod(i int, change func(*v1.Pod)) {
	pod := w.pods[i].DeepCopy()
	change(pod)
	w.core.SetPod(pod, w.now)
	must(w.ref.cache.UpdatePod(w.ref.log, w.pods[i], pod))
	w.pods[i] = pod
}

func (w *world) deletePod(i int) {
	w.core.DeletePod(w.pods[i].UID, w.now)
	must(w.ref.cache.RemovePod(w.ref.log, w.pods[i]))
	w.pods = slices.Delete(w.pods, i, i+1)
}

func (w *world) setNamespace(name string, set map[string]string) {
	w.core.SetNamespace(name, set, w.now)
	must(w.ref.factory.Core().V1().Namespaces().Informer().GetStore().Add(&v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set},
	}))
}

func (w *world) setService(namespace, name string, selector map[string]string) {
	w.core.Ledger.SetService(namespace, name, selector)
	must(w.ref.factory.Core().V1().Services().Informer().GetStore().Add(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.ServiceSpec{Selector: selector},
	}))
}

func (w *world) setReplicaSet(namespace, name string, selector *metav1.LabelSelector) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	must(err)
	w.core.Ledger.SetOwner(ledger.ReplicaSet, namespace, name, parsed)
	must(w.ref.factory.Apps().V1().ReplicaSets().Informer().GetStore().Add(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.ReplicaSetSpec{Selector: selector},
	}))
}

func (w *world) setBudget(budget *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	disrupted := map[string]bool{}
	for name := range budget.Status.DisruptedPods {
		disrupted[name] = true
	}
	w.core.Ledger.SetBudget(&ledger.Budget{
		Namespace: budget.Namespace, Name: budget.Name, Selector: selector, Allowed: budget.Status.DisruptionsAllowed, Disrupted: disrupted,
	})
	w.budgets = append(w.budgets, budget)
	// The reference takes them as it finds them, Bayplan by name.
	slices.SortFunc(w.budgets, func(a, b *policyv1.PodDisruptionBudget) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// nominate reserves room on a node for a pod that is not placed yet; an empty node takes the reservation back.
func (w *world) nominate(pod *v1.Pod, node string) {
	asked, release := w.ask(pod)
	if node != "" {
		release = func() {}
	}
	w.engine.Nominate(asked, node)
	release()
	w.ref.nominator.nominate(pod, node)
}

// ask compiles a pod for the engine. A shape that is nominated stays compiled.
func (w *world) ask(pod *v1.Pod) (asked *cycle.Pod, release func()) {
	compiled := w.core.Ledger.Shapes.Compile(pod)
	if pod.Spec.NodeName != "" {
		compiled = w.core.Ledger.Shapes.CompilePinned(pod)
	}
	asked = &cycle.Pod{UID: pod.UID, Shape: compiled, Nominated: pod.Status.NominatedNodeName}
	if pod.Spec.Priority != nil {
		asked.Priority = *pod.Spec.Priority
	}
	return asked, func() { w.core.Ledger.Shapes.Release(compiled) }
}

// compare puts a pod before both schedulers.
func (w *world) compare(pod *v1.Pod) (*trial, []string, error) {
	t, err := w.ref.try(pod)
	if err != nil {
		return nil, nil, err
	}
	asked, release := w.ask(pod)
	defer release()
	differences := t.verdict.differences(verdictOf(w.engine, w.core.Ledger, asked))
	var plan *storage.Plan
	if slot, known := w.core.Ledger.Slot(t.verdict.chosen); known {
		plan = w.engine.PlanVolumes(asked, slot)
	}
	return t, append(differences, w.comparePlan(t, plan)...), nil
}

// preemption is what the reference makes of a pod that no node takes.
type preemption struct {
	// refused tells that the pod may not preempt others.
	refused bool
	// found are the nodes on which it would help, chosen is the one taken.
	found  []candidate
	chosen candidate
}

// comparePreemption lets both look for victims for a pod that has just been rejected by every node.
func (w *world) comparePreemption(t *trial) (p preemption, differences []string, err error) {
	asked, release := w.ask(t.pod)
	defer release()
	never := t.pod.Spec.PreemptionPolicy != nil && *t.pod.Spec.PreemptionPolicy == v1.PreemptNever
	ours := w.engine.Preempt(asked, never)
	if ok, why := w.ref.preempt.PodEligibleToPreemptOthers(w.ref.ctx, t.pod, t.statuses.Get(t.pod.Status.NominatedNodeName)); !ok {
		p.refused = true
		return p, same("message", "preemption: "+why, ours.Message), nil
	}
	found, chosen, err := w.ref.dryRun(t, w.budgets)
	if err != nil {
		return p, nil, err
	}
	if len(found) == 0 {
		return p, append(same("node", "", ours.Node), w.compareHelpless(t, ours)...), nil
	}
	p.found, p.chosen = found, candidateOn(found, chosen)
	var victims []string
	for _, pod := range ours.Victims {
		victims = append(victims, pod.Name)
	}
	want := candidateOn(found, ours.Node)
	differences = same("victims", want.victims, victims)
	if p.chosen.rank != want.rank {
		differences = append(differences, fmt.Sprintf("candidate %+v, here %+v", p.chosen, want))
	}
	return p, append(differences, same("violations", want.rank.violations, int64(ours.Violations))...), nil
}

func candidateOn(list []candidate, node string) candidate {
	i := slices.IndexFunc(list, func(c candidate) bool { return c.node == node })
	if i < 0 {
		return candidate{node: "none"}
	}
	return list[i]
}

// compareHelpless compares what is said if preemption helps nowhere. PostFilter then evicts nobody.
func (w *world) compareHelpless(t *trial, ours *cycle.Eviction) []string {
	must(w.ref.factory.Core().V1().Pods().Informer().GetStore().Add(t.pod))
	_, status := w.ref.preempt.PostFilter(w.ref.ctx, t.state, t.pod, t.statuses)
	must(w.ref.factory.Core().V1().Pods().Informer().GetStore().Delete(t.pod))
	return same("message", status.Message(), ours.Message)
}

func same(what string, want, have any) []string {
	if a, b := fmt.Sprint(want), fmt.Sprint(have); a != b {
		return []string{fmt.Sprintf("%s %s, here %s", what, a, b)}
	}
	return nil
}
