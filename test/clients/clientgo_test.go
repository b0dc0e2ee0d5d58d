package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/bayplan/bayplan/testcluster"
)

// gate is a way to the API that can be shut. It counts how often everything is asked for: by a list, or by a watch that begins with what is there.
type gate struct {
	next  http.RoundTripper
	shut  atomic.Bool
	lists atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.shut.Load() {
		return nil, errors.New("the gate is shut")
	}
	if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
		g.lists.Add(1)
	}
	return g.next.RoundTrip(r)
}

// TestInformer: an informer goes on where it was after a restart of the API. What it missed is so much that its watch cannot go on from where it was ("410
// Gone", or "Expired"): it lists anew, and has everything once.
func TestInformer(t *testing.T) {
	ctx := testContext(t)
	cluster := testcluster.Start(t)
	config, direct := rest.CopyConfig(cluster.Config()), kubernetes.NewForConfigOrDie(cluster.Config())
	way := &gate{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { way.next = next; return way })
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := &journal{added: map[string]int{}}
	_, err := informer.AddEventHandler(seen)
	must(t, err)
	running, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.StartWithContext(running)
	factory.WaitForCacheSync(ctx.Done())

	writeMap(ctx, t, direct, "before")
	eventually(ctx, t, "the first event", seen.has("before"))
	way.shut.Store(true)
	lists := way.lists.Load()
	cluster.Restart()
	for i := range 5 {
		writeMap(ctx, t, direct, fmt.Sprintf("missed-%d", i))
	}
	must(t, direct.CoreV1().ConfigMaps("default").Delete(ctx, "before", metav1.DeleteOptions{}))
	cluster.Restart()
	way.shut.Store(false)
	eventually(ctx, t, "an event that was missed", seen.has("missed-4"))
	writeMap(ctx, t, direct, "after")
	eventually(ctx, t, "an event after the restart", seen.has("after"))

	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, name := range []string{"before", "missed-0", "missed-1", "missed-2", "missed-3", "missed-4", "after"} {
		if seen.added[name] != 1 {
			t.Errorf("%s was seen to be added %d times", name, seen.added[name])
		}
	}
	if seen.deleted != 1 {
		t.Errorf("%d deletions were seen, want that of one", seen.deleted)
	}
	if way.lists.Load() == lists {
		t.Error("the watch went on from where it was, although the server no longer has that")
	}
}

func writeMap(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// journal counts events by name.
type journal struct {
	mu      sync.Mutex
	added   map[string]int
	deleted int
}

func (j *journal) OnAdd(obj any, _ bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.added[obj.(*corev1.ConfigMap).Name]++
}

func (j *journal) OnUpdate(any, any) {}

func (j *journal) OnDelete(any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.deleted++
}

func (j *journal) has(name string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.added[name] > 0, nil
	}
}

// TestLeaderElection: of two candidates one leads; when it stops, the other does.
func TestLeaderElection(t *testing.T) {
	ctx := testContext(t)
	client := kubernetes.NewForConfigOrDie(testcluster.Start(t).Config())
	leads := make(chan string, 10)
	first := candidate(ctx, t, client, "first", leads)
	if leader := <-leads; leader != "first" {
		t.Fatalf("%s leads", leader)
	}
	second := candidate(ctx, t, client, "second", leads)
	first()
	if leader := <-leads; leader != "second" {
		t.Fatalf("after the first stopped %s leads", leader)
	}
	lease, err := client.CoordinationV1().Leases("default").Get(ctx, "lock", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
		t.Errorf("the lease: %+v", lease.Spec)
	}
	second()
}

// candidate runs until the function that it returns is called, which waits for its end.
func candidate(ctx context.Context, t *testing.T, client kubernetes.Interface, name string, leads chan<- string) func() {
	ctx, cancel := context.WithCancel(ctx)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "lock"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {}},
	})
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	return stop
}
