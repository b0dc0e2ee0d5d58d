package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// benchCluster is a cluster of the kind that the figures in docs/performance.md speak of: ten pods a node of 100
// Deployments, one node in ten tainted, ten zones.
func benchCluster(nodes, podsPerNode int) *ledger.Ledger {
	random := rand.New(rand.NewPCG(1, 2))
	l := ledger.New()
	for i := range nodes {
		l.SetNode(benchNode(i))
	}
	var pods []*v1.Pod
	for i := range 100 {
		pods = append(pods, benchPod(fmt.Sprintf("deployment-%d", i), 50+int64(random.IntN(8))*50, 64+int64(random.IntN(8))*64))
	}
	for i := range nodes * podsPerNode {
		s := l.Shapes.Compile(pods[random.IntN(len(pods))])
		uid := fmt.Sprintf("7f3a6c1e-5b0d-4a55-9d3e-%012d", i)
		l.AddPod(&ledger.Pod{UID: types.UID(uid), Name: fmt.Sprintf("pod-%d", i), Shape: s}, nodeName(random.IntN(nodes)))
	}
	return l
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func benchNode(i int) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			v1.LabelHostname: nodeName(i), v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%10),
			"disk": []string{"ssd", "hdd"}[i%2], "pool": fmt.Sprintf("pool-%d", i%5),
		}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: *resource.NewQuantity(8+8*int64(i%3), resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(32<<30, resource.BinarySI),
			v1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI),
		}},
	}
	if i/10%10 == 7 {
		node.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule}}
	}
	return node
}

func benchPod(app string, cpu, memory int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": app}},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{
			Name: "main", Image: "hello:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
			}},
		}}},
	}
}

// kinds are the pods of the table of figures.
var kinds = []struct {
	name  string
	known bool
	make  func(app string) *v1.Pod
}{
	{"plain-new", false, func(app string) *v1.Pod { return benchPod(app, 100, 128) }},
	{"plain-known", true, func(app string) *v1.Pod { return benchPod(app, 100, 128) }},
	{"affinity", false, affinityPod},
	{"spread", false, spreadPod},
	{"antiaffinity", false, antiAffinityPod},
}

func affinityPod(app string) *v1.Pod {
	pod := benchPod(app, 100, 128)
	pod.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
	requirement := func(key string, values ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: key, Operator: v1.NodeSelectorOpIn, Values: values},
		}}
	}
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{requirement("disk", "ssd")},
		},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{
			{Weight: 10, Preference: requirement("pool", "pool-1", "pool-2")},
		},
	}}
	return pod
}

func spreadPod(app string) *v1.Pod {
	pod := benchPod(app, 100, 128)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
		{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selector},
		{MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: selector},
	}
	return pod
}

func antiAffinityPod(app string) *v1.Pod {
	pod := benchPod(app, 100, 128)
	pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}},
	}}
	return pod
}

// BenchmarkDecide measures one decision and the placement that follows, with the whole default profile.
func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{5000, 100000} {
		l := benchCluster(nodes, 10)
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("%s/%d", kind.name, nodes), func(b *testing.B) {
				benchDecide(b, l, kind.make, kind.known)
			})
		}
	}
}

func benchDecide(b *testing.B, l *ledger.Ledger, pod func(string) *v1.Pod, known bool) {
	engine := cycle.New(l, plugins.Default(), cycle.Options{Seed: 1})
	mark := l.Mark()
	defer func() {
		l.Rollback(mark)
	}()
	example := pod("deployment-3")
	s := l.Shapes.Compile(example)
	engine.Decide(&cycle.Pod{UID: "warm", Shape: s})
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var spent time.Duration
	i := 0
	for b.Loop() {
		i++
		start := cpuTime()
		if !known {
			engine.Forget(s)
		}
		uid := types.UID("bench")
		decision := engine.Decide(&cycle.Pod{UID: uid, Shape: s})
		if decision.Slot == ledger.None {
			b.Fatal("no node takes the pod")
		}
		l.AddPod(&ledger.Pod{UID: uid, Shape: s}, l.NodeName(decision.Slot))
		spent += cpuTime() - start
		if i%1000 == 0 {
			l.Rollback(mark)
			l.Mark()
			engine.Decide(&cycle.Pod{UID: uid, Shape: s})
		}
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(i)/1000, "cpu-us/decision")
}

// BenchmarkLedger measures what the ledger holds: 100,000 nodes and a million pods, with their names and UIDs, without
// the objects that they were made from.
func BenchmarkLedger(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := benchCluster(100000, 10)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		runtime.KeepAlive(l)
	}
}

// BenchmarkPodEvent measures a pod that comes and goes: its cost must not depend on the number of nodes.
func BenchmarkPodEvent(b *testing.B) {
	for _, nodes := range []int{1000, 100000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			l := benchCluster(nodes, 10)
			s := l.Shapes.Compile(benchPod("deployment-1", 100, 128))
			pod := &ledger.Pod{UID: "bench", Shape: s}
			b.ReportAllocs()
			for b.Loop() {
				l.AddPod(pod, "node-77")
				l.RemovePod(pod)
			}
		})
	}
}

// BenchmarkNodeEvent measures a node whose allocatable memory changes.
func BenchmarkNodeEvent(b *testing.B) {
	for _, nodes := range []int{1000, 100000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			l := benchCluster(nodes, 1)
			less, more := benchNode(77), benchNode(77)
			less.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("31Gi")
			b.ReportAllocs()
			for b.Loop() {
				l.SetNode(less)
				l.SetNode(more)
			}
		})
	}
}
