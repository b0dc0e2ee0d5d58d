package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// testPod makes a running, ready pod, an hour old; the options change it.
func testPod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec:       corev1.PodSpec{NodeName: "n-" + name},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func notReady(p *corev1.Pod) { p.Status.Conditions = nil }
func cost(c string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: c} }
}
func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-d)) }
}
func restarts(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: n}} }
}
func age(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}

func names(pods []*corev1.Pod) string {
	var out []string
	for _, pod := range pods {
		out = append(out, pod.Name)
	}
	return strings.Join(out, " ")
}

// Each criterion decides before those that follow it: every pod is worse in one and better in all later ones than the next.
func TestRankForDeletionOrder(t *testing.T) {
	best := cost("100")
	pods := []*corev1.Pod{
		testPod("unassigned", on(""), best),
		testPod("pending", phase(corev1.PodPending), best),
		testPod("unknown", phase(corev1.PodUnknown), best),
		testPod("unready", notReady, best),
		testPod("cheap", cost("-1"), readyFor(50*time.Hour)),
		testPod("crowded", on("n"), readyFor(10*time.Hour)),
		testPod("fresh", readyFor(time.Minute)),
		testPod("shaky", restarts(3), age(100*time.Hour)),
		testPod("young", age(time.Minute)),
		testPod("old", age(1000*time.Hour)),
	}
	crowd := testPod("crowd", on("n"), cost("1000"))
	want := names(pods)
	for seed := range uint64(20) {
		shuffled := append([]*corev1.Pod(nil), pods...)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := names(RankForDeletion(shuffled, Neighbourhood{Related: append(shuffled, crowd)}, noon)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// Six pods over three zones scaled to three leave one in each, on whatever nodes they are, unless readiness or deletion cost decides.
func TestRankForDeletionSpreads(t *testing.T) {
	zone := func(node string) string { return node[:1] }
	left := func(pods []*corev1.Pod) string {
		zones := map[string]int{}
		for _, pod := range RankForDeletion(pods, Neighbourhood{Related: pods, Zone: zone}, noon)[3:] {
			zones[zone(pod.Spec.NodeName)]++
		}
		return fmt.Sprint(zones["a"], zones["b"], zones["c"])
	}
	rapid.Check(t, func(rt *rapid.T) {
		var pods []*corev1.Pod
		for i, z := range []string{"a", "a", "b", "b", "c", "c"} {
			node := fmt.Sprint(z, rapid.IntRange(1, 2).Draw(rt, "node"))
			pods = append(pods, testPod(fmt.Sprint("p", i), on(node)))
		}
		pods = rapid.Permutation(pods).Draw(rt, "order")
		if got := left(pods); got != "1 1 1" {
			rt.Fatalf("left %s, want one in each zone", got)
		}
	})
	dear := []*corev1.Pod{
		testPod("1", on("a1"), cost("5")), testPod("2", on("a1"), cost("5")), testPod("3", on("b1"), cost("5")),
		testPod("4", on("b1")), testPod("5", on("c1")), testPod("6", on("c1")),
	}
	if got := left(dear); got != "2 1 0" {
		t.Errorf("left %s, want those with the higher cost", got)
	}
}

func TestPodAvailableIn(t *testing.T) {
	for _, c := range []struct {
		pod     *corev1.Pod
		minimum int32
		wait    time.Duration
		ready   bool
	}{
		{testPod("a", notReady), 0, 0, false},
		{testPod("a", readyFor(0)), 0, 0, true},
		{testPod("a", readyFor(4*time.Second)), 10, 6 * time.Second, true},
		{testPod("a", readyFor(10*time.Second)), 10, 0, true},
	} {
		if wait, ready := PodAvailableIn(c.pod, c.minimum, noon); wait != c.wait || ready != c.ready {
			t.Errorf("%v with minReadySeconds %d: %v %v, want %v %v", c.pod.Status.Conditions, c.minimum, wait, ready, c.wait, c.ready)
		}
	}
}

func BenchmarkRankForDeletion(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 0))
	pods := make([]*corev1.Pod, 5000)
	for i := range pods {
		pods[i] = testPod(fmt.Sprint(i), on(fmt.Sprint("n", random.IntN(500))), readyFor(time.Duration(random.IntN(1e6))*time.Millisecond))
	}
	b.ReportAllocs()
	for b.Loop() {
		RankForDeletion(pods, Neighbourhood{Related: pods}, noon)
	}
}
