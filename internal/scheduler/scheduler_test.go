package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

// cluster is an API server in memory with a scheduler that runs against it.
type cluster struct {
	*fake.Clientset
	t         *testing.T
	scheduler *Scheduler
	stop      func()
	recorder  *events.FakeRecorder
	binds     int
	// refuse makes the next binds fail. fault, if set, tells of each whether it fails, and whether after having been done.
	refuse int
	fault  func() (fails, done bool)
}

func startCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := newCluster(t, objects...)
	c.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods"}, {Name: "services"}}},
		{GroupVersion: "policy/v1", APIResources: []metav1.APIResource{{Name: "poddisruptionbudgets"}}},
	}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// newCluster makes an API server in memory without a scheduler.
func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	c := &cluster{Clientset: fake.NewClientset(objects...), t: t, recorder: events.NewFakeRecorder(1000)}
	c.PrependReactor("create", "pods", c.bind)
	return c
}

// start runs a scheduler against the cluster until stop.
func (c *cluster) start() {
	c.t.Helper()
	s, err := New(Config{
		Client: c.Clientset, Informers: informers.NewSharedInformerFactory(c.Clientset, 0), Recorder: c.recorder, Workers: 1,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.scheduler = s
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("Run: %v", err)
		}
		s.config.Informers.Shutdown()
		synctest.Wait()
	}
	time.Sleep(time.Second) // The bubble's clock: informers look every 100 ms whether they are in step.
	synctest.Wait()
}

// bind is the API server's sub-resource pods/binding.
func (c *cluster) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	c.binds++
	if c.refuse > 0 {
		c.refuse--
		return true, nil, errors.New("etcd is on holiday")
	}
	fails, done := false, false
	if c.fault != nil {
		fails, done = c.fault()
	}
	if fails && !done {
		return true, nil, errors.New("connection refused")
	}
	binding := create.GetObject().(*v1.Binding)
	object, err := c.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*v1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		return true, nil, fmt.Errorf("pod %s is already assigned to node %s", pod.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = binding.Target.Name
	if err := c.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil || !fails {
		return true, binding, err
	}
	return true, nil, errors.New("connection lost before the answer came")
}

func (c *cluster) pod(name string) *v1.Pod {
	c.t.Helper()
	pod, err := c.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *cluster) create(pod *v1.Pod) {
	c.t.Helper()
	if _, err := c.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) wantEvent(parts ...string) {
	c.t.Helper()
	select {
	case event := <-c.recorder.Events:
		for _, part := range parts {
			if !strings.Contains(event, part) {
				c.t.Errorf("event %q does not contain %q", event, part)
			}
		}
	default:
		c.t.Errorf("no event, want one with %q", parts)
	}
}

func node(name, cpu string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("8Gi"),
			v1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

func pod(name, cpu string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: DefaultName, Containers: []v1.Container{{
			Name: "main", Image: "hello", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse(cpu),
			}},
		}}},
	}
}

func TestPodIsBoundAndToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"), pod("a", "1"))
		if got := c.pod("a").Spec.NodeName; got != "n1" {
			t.Errorf("pod a is on node %q, want n1", got)
		}
		c.wantEvent("Normal Scheduled", "Successfully assigned default/a to n1")
	})
}

func TestPodThatFitsNowhereIsToldWhyAndScheduledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"))
		c.create(pod("big", "6"))
		const message = "0/1 nodes are available: 1 Insufficient cpu. " +
			"preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
		c.wantEvent("Warning FailedScheduling", message)
		condition := c.pod("big").Status.Conditions[0]
		if condition.Type != v1.PodScheduled || condition.Status != v1.ConditionFalse ||
			condition.Reason != v1.PodReasonUnschedulable || condition.Message != message {
			t.Errorf("condition of pod big is %+v", condition)
		}
		if _, err := c.CoreV1().Nodes().Create(context.Background(), node("n2", "8"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1001 * time.Millisecond) // The bubble's clock: the back-off of the first failure.
		synctest.Wait()
		if got := c.pod("big").Spec.NodeName; got != "n2" {
			t.Errorf("pod big is on node %q, want n2", got)
		}
	})
}

func TestFailedBindingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"))
		c.refuse = 2
		c.create(pod("a", "4"))
		c.wantEvent("Warning FailedScheduling", "binding pod default/a to node n1: etcd is on holiday")
		time.Sleep(3001 * time.Millisecond) // Back-off of 1 s, then of 2 s.
		synctest.Wait()
		if got := c.pod("a").Spec.NodeName; got != "n1" || c.binds != 3 {
			t.Errorf("pod a is on node %q after %d attempts, want n1 after 3", got, c.binds)
		}
	})
}

func TestStormNeverOvercommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"), node("n2", "4"))
		for i := range 20 {
			c.create(pod(fmt.Sprintf("p%d", i), "500m"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		used := map[string]int{}
		for i := range 20 {
			used[c.pod(fmt.Sprintf("p%d", i)).Spec.NodeName]++
		}
		if used["n1"] != 8 || used["n2"] != 8 || used[""] != 4 {
			t.Errorf("pods per node: %v, want 8 on each and 4 waiting", used)
		}
		if c.binds != 16 {
			t.Errorf("%d pods were bound, want 16", c.binds)
		}
	})
}

// TestFaults: whatever becomes of binding, every pod ends on one node, and none is overcommitted. Answers get lost after
// the work was done, and the scheduler is replaced in the middle of the storm.
func TestFaults(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) { testFaults(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func testFaults(t *testing.T, random *rand.Rand) {
	c := startCluster(t, node("n1", "4"), node("n2", "4"), node("n3", "4"))
	c.fault = func() (bool, bool) { return random.IntN(3) == 0, random.IntN(2) == 0 }
	for i := range 30 {
		c.create(pod(fmt.Sprintf("p%d", i), "400m"))
		if i == 15 {
			c.stop()
			c.start()
		}
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	used := map[string]int{}
	for i := range 30 {
		p := c.pod(fmt.Sprintf("p%d", i))
		used[p.Spec.NodeName]++
	}
	if used["n1"] != 10 || used["n2"] != 10 || used["n3"] != 10 {
		t.Errorf("pods per node: %v, want 10 on each", used)
	}
}

func TestPreemption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"))
		low, high := pod("low", "3"), pod("high", "3")
		priority := int32(100)
		high.Spec.Priority = &priority
		c.create(low)
		c.wantEvent("Scheduled", "default/low")
		c.create(high)
		c.wantEvent("Preempted", "Preempted by pod high on node n1")
		c.wantEvent("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
		if got := c.pod("high").Status.NominatedNodeName; got != "n1" {
			t.Errorf("pod high is nominated to %q, want n1", got)
		}
		time.Sleep(1001 * time.Millisecond) // The bubble's clock: back-off.
		synctest.Wait()
		if got := c.pod("high").Spec.NodeName; got != "n1" {
			t.Errorf("pod high is on node %q, want n1", got)
		}
		pods, err := c.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			t.Errorf("%d pods are left (%v), want only high", len(pods.Items), err)
		}
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, node("n1", "4"))
		c.create(pod("big", "6"))
		x, err := c.scheduler.Explain(t.Context(), c.pod("big"), cycle.RecordOptions{Misses: 1})
		if err != nil {
			t.Fatal(err)
		}
		if x.Place != "unschedulable" || len(x.Record.Misses) != 1 || x.Record.Misses[0].Advice[0].Missing["cpu"] != 2000 {
			t.Errorf("the explanation is %+v with record %+v, want 2 CPUs missing on n1", x, x.Record)
		}
	})
}

func TestServicesSpreadPodsIfTheAPIHasThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
			Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "web"}},
		}
		c := startCluster(t, node("n1", "4"), service)
		web := pod("a", "1")
		web.Labels = map[string]string{"app": "web"}
		x, err := c.scheduler.Explain(t.Context(), web, cycle.RecordOptions{Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(x.Record.Top[0].Parts, func(s cycle.Share) bool { return s.Plugin == "PodTopologySpread" }) {
			t.Errorf("the Service's selector is not known to the scheduler: %+v", x.Record.Top)
		}
	})
}
