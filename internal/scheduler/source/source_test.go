package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

type pod = ledger.Pod

// brokenDiscovery is an API server that cannot be asked.
type brokenDiscovery struct{ discovery.DiscoveryInterface }

func (brokenDiscovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, errors.New("no route")
}

func TestMailboxKeepsTheOrderOfEachSender(t *testing.T) {
	const senders, each = 8, 1000
	m := NewMailbox[[2]int]()
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				m.Put([2]int{s, i})
			}
		})
	}
	next, got := [senders]int{}, 0
	var batch [][2]int
	for got < senders*each {
		<-m.Ready()
		batch = m.Take(batch)
		for _, value := range batch {
			if value[1] != next[value[0]] {
				t.Fatalf("sender %d: got %d, want %d", value[0], value[1], next[value[0]])
			}
			next[value[0]]++
			got++
		}
	}
	sending.Wait()
}

// watch starts a source against an API server in memory and returns a core that has been told what it says.
func watch(t *testing.T, client *fake.Clientset) (settle func() *core.Core) {
	c := core.New(core.Config{Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}}})
	factory, mailbox := informers.NewSharedInformerFactory(client, 0), NewMailbox[Event]()
	s, err := New(factory, mailbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Discover(client.Discovery()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), s.Synced()...) {
		t.Fatal("informers are not in step")
	}
	return func() *core.Core {
		synctest.Wait()
		for _, apply := range mailbox.Take(nil) {
			apply(c, time.Now())
		}
		return c
	}
}

func TestPodMadeAgainUnderItsName(t *testing.T) {
	s := &Source{mailbox: NewMailbox[Event]()}
	c := core.New(core.Config{Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}}})
	c.SetNode(transcript.Node(t, "n1"), time.Time{})
	old := transcript.Pod(t, "a", "on=n1", "cpu=1")
	again := old.DeepCopy()
	again.UID, again.Spec.NodeName = "second", ""
	handler := s.pods()
	handler.OnAdd(old, true)
	handler.OnUpdate(old, again)
	handler.OnUpdate(again, again)
	for _, apply := range s.mailbox.Take(nil) {
		apply(c, time.Time{})
	}
	if c.Ledger.Pods() != 0 || c.Queue.Get("second") == nil || c.Queue.Len() != 1 {
		t.Errorf("%d pods count and %d wait, want the second alone to wait", c.Ledger.Pods(), c.Queue.Len())
	}
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/a", Obj: again})
	for _, apply := range s.mailbox.Take(nil) {
		apply(c, time.Time{})
	}
	if c.Queue.Len() != 0 {
		t.Error("the pod whose deletion the watch missed still waits")
	}
}

func TestEverythingWatchedReachesTheCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		meta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}
		}
		client := fake.NewClientset(
			transcript.Node(t, "n1"), transcript.Pod(t, "placed", "on=n1", "labels=app=web"), transcript.Pod(t, "waiting"),
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
			&v1.Service{ObjectMeta: meta("svc"), Spec: v1.ServiceSpec{Selector: map[string]string{"tier": "front"}}},
			&appsv1.ReplicaSet{ObjectMeta: meta("rs"), Spec: appsv1.ReplicaSetSpec{Selector: web}},
			&appsv1.StatefulSet{ObjectMeta: meta("ss"), Spec: appsv1.StatefulSetSpec{Selector: web}},
			&v1.ReplicationController{ObjectMeta: meta("rc"), Spec: v1.ReplicationControllerSpec{Selector: web.MatchLabels}},
			&policyv1.PodDisruptionBudget{ObjectMeta: meta("pdb"), Spec: policyv1.PodDisruptionBudgetSpec{Selector: web}},
		)
		client.Resources = []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "services"}, {Name: "replicationcontrollers"}}},
			{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "replicasets"}, {Name: "statefulsets"}}},
			{GroupVersion: "policy/v1", APIResources: []metav1.APIResource{{Name: "poddisruptionbudgets"}}},
		}
		settle := watch(t, client)
		c := settle()
		if c.Ledger.Nodes() != 1 || c.Ledger.Pods() != 1 || c.Queue.Len() != 1 || c.Ledger.Namespace("default")["team"] != "a" {
			t.Errorf("%d nodes, %d pods, %d waiting, namespace %v", c.Ledger.Nodes(), c.Ledger.Pods(), c.Queue.Len(), c.Ledger.Namespace("default"))
		}
		for kind, version := range map[string]string{"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"} {
			pod := transcript.Pod(t, "p", "labels=app=web,tier=front")
			name := map[string]string{"ReplicaSet": "rs", "StatefulSet": "ss", "ReplicationController": "rc"}[kind]
			yes := true
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, Controller: &yes}}
			if got := c.Ledger.Siblings(c.Ledger.Shapes.Compile(pod)).String(); got != "app=web,tier=front" && got != "tier=front,app=web" {
				t.Errorf("siblings of a pod of a %s are %q", kind, got)
			}
		}
		placed := c.Ledger.Pod("placed")
		if !c.Ledger.Violating(append([]*pod(nil), placed))[0] {
			t.Error("the budget does not cover the placed pod")
		}
		ctx := context.Background()
		for _, err := range []error{
			client.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, "pdb", metav1.DeleteOptions{}),
			client.CoreV1().Pods("default").Delete(ctx, "waiting", metav1.DeleteOptions{}),
			client.CoreV1().Nodes().Delete(ctx, "n1", metav1.DeleteOptions{}),
			client.CoreV1().Namespaces().Delete(ctx, "default", metav1.DeleteOptions{}),
			client.CoreV1().Services("default").Delete(ctx, "svc", metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		c = settle()
		if c.Ledger.Nodes() != 0 || c.Queue.Len() != 0 || c.Ledger.Namespace("default") != nil || c.Ledger.Violating(append([]*pod(nil), placed))[0] {
			t.Errorf("after deletion: %d nodes, %d waiting, namespace %v", c.Ledger.Nodes(), c.Queue.Len(), c.Ledger.Namespace("default"))
		}
	})
}

func TestErrorOfDiscoveryIsTold(t *testing.T) {
	s := &Source{factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0), mailbox: NewMailbox[Event]()}
	err := s.Discover(brokenDiscovery{fake.NewClientset().Discovery()})
	if err == nil || !strings.Contains(fmt.Sprint(err), "kinds of v1: no route") {
		t.Errorf("error is %v", err)
	}
}
