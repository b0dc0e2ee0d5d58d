package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// model is the API server's side of a core under test: what objects there are.
type model struct {
	t     *testing.T
	core  *core.Core
	now   time.Time
	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod
	// binding holds the pods that have been decided and not yet bound, with their nodes.
	binding map[string]string
	serial  int
}

func newCore() *core.Core {
	return core.New(core.Config{
		Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}},
		Cycle:    cycle.Options{Seed: 1}, Queue: queue.Options{},
	})
}

func pick(r *rapid.T, label string, words ...string) string {
	return rapid.SampledFrom(words).Draw(r, label)
}

func (m *model) pickPod(r *rapid.T) string {
	if len(m.pods) == 0 {
		r.Skip("no pods")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.pods))).Draw(r, "pod")
}

// actions are what can happen to a cluster, in any order.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"node": m.setNode, "deleteNode": m.deleteNode, "pod": m.addPod, "deletePod": m.deletePod, "terminating": m.terminate,
		"finish": m.finish, "cycle": m.cycle, "bound": m.bound, "bindFailed": m.bindFailed, "advance": m.advance, "": m.check,
	}
}

func (m *model) setNode(r *rapid.T) {
	name := pick(r, "node", "n1", "n2", "n3", "n4", "n5")
	words := []string{
		"cpu=" + pick(r, "cpu", "1", "2", "4"), "memory=" + pick(r, "memory", "1Gi", "4Gi"), "pods=" + pick(r, "pods", "3", "10"),
		"labels=zone=" + pick(r, "zone", "a", "b") + pick(r, "disk", "", ",disk=ssd"),
	}
	if pick(r, "taint", "", "", "taint") != "" {
		words = append(words, "taint=special:NoSchedule")
	}
	m.nodes[name] = transcript.Node(m.t, name, words...)
	m.core.SetNode(m.nodes[name], m.now)
}

func (m *model) deleteNode(r *rapid.T) {
	name := pick(r, "node", "n1", "n2", "n3", "n4", "n5")
	delete(m.nodes, name)
	m.core.DeleteNode(name, m.now)
}

func (m *model) addPod(r *rapid.T) {
	m.serial++
	name := fmt.Sprintf("p%d", m.serial)
	app := pick(r, "app", "a", "b", "c")
	words := []string{"cpu=" + pick(r, "cpu", "0", "250m", "1"), "memory=" + pick(r, "memory", "0", "256Mi"), "labels=app=" + app}
	words = append(words, strings.Fields(pick(r, "wish", "", "", "select=disk=ssd", "tolerate=special", "port=80",
		"spread=zone:1:hard:app="+app, "spread=kubernetes.io/hostname:1:soft:app="+app, "apart=kubernetes.io/hostname:app="+app,
		"near=zone:app=a", "like=zone:app=b:10", "dislike=kubernetes.io/hostname:app=c:7", "gate", "priority=10"))...)
	if pick(r, "assigned", "no", "no", "yes") == "yes" {
		words = append(words, "on="+pick(r, "on", "n1", "n2", "n6"))
	}
	m.pods[name] = transcript.Pod(m.t, name, words...)
	m.core.SetPod(m.pods[name], m.now)
}

func (m *model) remove(name string) {
	delete(m.pods, name)
	delete(m.binding, name)
	m.core.DeletePod(types.UID(name), m.now)
}

func (m *model) deletePod(r *rapid.T) { m.remove(m.pickPod(r)) }

func (m *model) terminate(r *rapid.T) {
	name := m.pickPod(r)
	if m.pods[name].Spec.NodeName == "" {
		m.remove(name)
		return
	}
	pod := m.pods[name].DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: m.now}
	m.pods[name] = pod
	m.core.SetPod(pod, m.now)
}

func (m *model) finish(r *rapid.T) {
	name := m.pickPod(r)
	pod := m.pods[name].DeepCopy()
	pod.Status.Phase = v1.PodSucceeded
	m.core.SetPod(pod, m.now)
	delete(m.pods, name)
	delete(m.binding, name)
}

// cycle makes a decision and checks that what it takes is there to be taken.
func (m *model) cycle(r *rapid.T) {
	attempt := m.core.Next(m.now)
	if attempt == nil {
		return
	}
	if attempt.Node == "" {
		for _, victim := range victims(attempt) {
			if victim.Priority >= *attempt.Pod.Spec.Priority {
				r.Fatalf("pod %s preempts %s of no lower priority", attempt.Pod.Name, victim.Name)
			}
		}
		return
	}
	m.binding[attempt.Pod.Name] = attempt.Node
	slot, _ := m.core.Ledger.Slot(attempt.Node)
	for resource, name := range []string{"cpu", "memory"} {
		requests := attempt.Pod.Spec.Containers[0].Resources.Requests[v1.ResourceName(name)]
		used, all := m.core.Ledger.Requested(resource)[slot], m.core.Ledger.Allocatable(resource)[slot]
		if !requests.IsZero() && used > all {
			r.Fatalf("pod %s overcommits %s of node %s: %d of %d", attempt.Pod.Name, name, attempt.Node, used, all)
		}
	}
	if m.core.Ledger.PodCount[slot] > m.core.Ledger.AllowedPods[slot] {
		r.Fatalf("pod %s is one too many on node %s", attempt.Pod.Name, attempt.Node)
	}
}

func (m *model) pickBinding(r *rapid.T) string {
	if len(m.binding) == 0 {
		r.Skip("nothing is being bound")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.binding))).Draw(r, "binding")
}

func (m *model) bound(r *rapid.T) {
	name := m.pickBinding(r)
	pod := m.pods[name].DeepCopy()
	pod.Spec.NodeName = m.binding[name]
	m.pods[name] = pod
	delete(m.binding, name)
	// The watch may be faster than the answer, and the other way round.
	if pick(r, "order", "answer", "watch") == "answer" {
		m.core.Bound(pod.UID, m.now)
		m.core.SetPod(pod, m.now)
	} else {
		m.core.SetPod(pod, m.now)
		m.core.Bound(pod.UID, m.now)
	}
}

func (m *model) bindFailed(r *rapid.T) {
	name := m.pickBinding(r)
	delete(m.binding, name)
	m.core.BindFailed(types.UID(name), m.now)
}

func (m *model) advance(r *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds")) * time.Second)
}

// check compares the core with one that is told today's objects only, and looks for lost pods.
func (m *model) check(r *rapid.T) {
	fresh := newCore()
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		fresh.SetNode(m.nodes[name], m.now)
	}
	for name, pod := range m.pods {
		node, deciding := m.binding[name]
		if deciding {
			pod = pod.DeepCopy()
			pod.Spec.NodeName = node
		}
		if pod.Spec.NodeName == "" {
			if m.core.Queue.Get(pod.UID) == nil {
				r.Fatalf("pod %s has been lost: it has no node and is not in the queue", name)
			}
			continue
		}
		fresh.SetPod(pod, m.now)
	}
	if got, want := dump(m.core.Ledger), dump(fresh.Ledger); got != want {
		r.Fatalf("the ledger is\n%s\nbut one made from the objects is\n%s", got, want)
	}
	m.compareViews(r, fresh)
	m.noLostWakeUp(r)
}

// noLostWakeUp: a pod that is left waiting as unschedulable really cannot be placed as things are.
func (m *model) noLostWakeUp(r *rapid.T) {
	m.core.Queue.Each(func(item *queue.Item) {
		if item.Place != queue.Unschedulable {
			return
		}
		pod := cycle.Pod{UID: item.Pod.UID, Shape: item.Shape, Priority: item.Priority}
		for _, node := range m.core.Engine(v1.DefaultSchedulerName).Examine(&pod).Nodes {
			if node.Rejected == nil {
				r.Fatalf("pod %s waits, rejected by %v, though node %s takes it", item.Pod.Name, item.Rejectors, node.Node)
			}
		}
	})
}

// compareViews examines pods in both: whatever is cached must tell the same as what is new.
func (m *model) compareViews(r *rapid.T, fresh *core.Core) {
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		pod := m.pods[name].DeepCopy()
		pod.UID, pod.Spec.NodeName = "examined", ""
		got, want := examination(m.core, pod), examination(fresh, pod)
		if got != want {
			r.Fatalf("for a pod like %s the engine says\n%s\nbut a new one says\n%s", name, got, want)
		}
	}
}

// examination is of the highest priority, so that nobody nominated is in its way: a new engine knows of no nominations.
func examination(c *core.Core, pod *v1.Pod) string {
	s := c.Ledger.Shapes.Compile(pod)
	defer c.Ledger.Shapes.Release(s)
	var out strings.Builder
	for _, node := range c.Engine(v1.DefaultSchedulerName).Examine(&cycle.Pod{UID: pod.UID, Shape: s, Priority: 1 << 30}).Nodes {
		fmt.Fprintf(&out, "%s total %d", node.Node, node.Total)
		if node.Rejected != nil {
			fmt.Fprintf(&out, " rejected %v", *node.Rejected)
		}
		fmt.Fprintf(&out, " %v\n", node.Parts)
	}
	return out.String()
}

// dump writes everything that the ledger counts, in an order that does not depend on how it came about.
func dump(l *ledger.Ledger) string {
	var lines []string
	l.Live.Each(func(slot int32) {
		var pods []string
		for _, pod := range l.NodePods(slot) {
			pods = append(pods, fmt.Sprintf("%s(%v)", pod.UID, pod.Terminating))
		}
		slices.Sort(pods)
		line := fmt.Sprintf("%s: pods %d/%d %v, labels %v, taints %v, unschedulable %v", l.NodeName(slot), l.PodCount[slot],
			l.AllowedPods[slot], pods, l.Labels(slot), l.Taints(l.TaintSet[slot]), l.Unschedulable.Has(slot))
		for resource := range 2 {
			line += fmt.Sprintf(", %s %d/%d (%d)", l.Shapes.Resources.Name(resource), l.Requested(resource)[slot],
				l.Allocatable(resource)[slot], l.Scoring[resource][slot])
		}
		lines = append(lines, line)
	})
	l.EachGroup(func(g *ledger.Group) {
		line := fmt.Sprintf("group %s %v %v %v:", g.Shape.Class.Namespace, g.Shape.Class.Labels, g.Shape.Requests, g.Shape.Tolerations)
		var on []string
		for _, slot := range g.Slots {
			on = append(on, fmt.Sprintf("%s/%v", l.NodeName(max(slot, ^slot)), slot < 0))
		}
		slices.Sort(on)
		lines = append(lines, line+strings.Join(on, " "))
	})
	slices.Sort(lines)
	return strings.Join(append(lines, fmt.Sprintf("%d nodes, %d pods", l.Nodes(), l.Pods())), "\n")
}

func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &model{
			t: t, core: newCore(), now: time.Unix(1e9, 0), nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{},
			binding: map[string]string{},
		}
		r.Repeat(m.actions())
		m.settle(r)
	})
}

// settle gives every pod what it needs: then none may be left waiting.
func (m *model) settle(r *rapid.T) {
	for name := range m.pods {
		pod := m.pods[name].DeepCopy()
		if _, deciding := m.binding[name]; pod.Spec.NodeName != "" || deciding {
			continue
		}
		pod.Spec.SchedulingGates = nil
		m.pods[name] = pod
		m.core.SetPod(pod, m.now)
	}
	for i := range 20 {
		name := fmt.Sprintf("big%d", i)
		labels := fmt.Sprintf("labels=zone=%c,disk=ssd", 'a'+i%2)
		m.core.SetNode(transcript.Node(m.t, name, "cpu=1000", "memory=1000Gi", "pods=1000", labels), m.now)
	}
	placed := func(attempt *core.Attempt) {
		if attempt.Node != "" {
			m.core.Bound(attempt.Pod.UID, m.now)
		}
	}
	for range 4 {
		for attempt := m.core.Next(m.now); attempt != nil; attempt = m.core.Next(m.now) {
			placed(attempt)
		}
		m.now = m.now.Add(10 * time.Second)
	}
	m.core.Queue.Each(func(item *queue.Item) {
		constrained := len(item.Pod.Spec.TopologySpreadConstraints) > 0 || len(item.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		if _, deciding := m.binding[item.Pod.Name]; !deciding && !constrained {
			r.Fatalf("pod %s is left %s by %v", item.Pod.Name, item.Place, item.Rejectors)
		}
	})
}

func victims(attempt *core.Attempt) []*ledger.Pod {
	if attempt.Eviction == nil {
		return nil
	}
	return attempt.Eviction.Victims
}
