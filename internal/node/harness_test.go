package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/node/fakecri"
)

// cluster is an API and a runtime in memory and a node agent between them, in a bubble of fake time.
type cluster struct {
	t      *testing.T
	api    *fake.Clientset
	cri    *fakecri.Runtime
	root   string
	node   *Node
	cancel context.CancelFunc
	done   chan error
	config func(*Config)
	// free is the machine's free memory, disk that of its disk, pids the processes that it could still have.
	free, disk, pids atomic.Int64
}

// inCluster runs a test with a node in a bubble.
func inCluster(t *testing.T, f func(c *cluster)) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, api: fake.NewClientset(), cri: fakecri.New(clock.RealClock{}), root: root}
		c.free.Store(8 << 30)
		c.disk.Store(100 << 30)
		c.pids.Store(10000)
		c.cri.AddImage("app:1")
		f(c)
		if c.cancel != nil {
			c.stop()
		}
		c.unmount()
	})
}

// unmount takes away what the volumes of pods have mounted below the root directory.
func (c *cluster) unmount() {
	pods, err := os.ReadDir(filepath.Join(c.root, "pods"))
	if err != nil {
		return // there was no node
	}
	for _, pod := range pods {
		if err := c.node.volumes.Unmount(types.UID(pod.Name())); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *cluster) start() {
	c.t.Helper()
	cfg := Config{
		Name: "n1", Client: c.api, Runtime: c.cri, RootDir: c.root, Address: netip.MustParseAddr("10.0.0.1"), CgroupRoot: "bayplan/test/n1",
		PodCIDR: netip.MustParsePrefix("10.1.0.0/24"),
	}
	cfg.FreeMemory = func() (int64, error) { return c.free.Load(), nil }
	cfg.FreeDisk = func() (int64, error) { return c.disk.Load(), nil }
	cfg.FreePIDs = func() (int64, error) { return c.pids.Load(), nil }
	if c.config != nil {
		c.config(&cfg)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	n, err := New(ctx, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.node, c.cancel, c.done = n, cancel, make(chan error, 1)
	go func() { c.done <- n.Run(ctx) }()
	c.settle()
}

// stop ends the agent as a signal would.
func (c *cluster) stop() {
	c.t.Helper()
	c.cancel()
	if err := <-c.done; err != nil {
		c.t.Fatal(err)
	}
	c.cancel = nil
	synctest.Wait()
}

// settle waits until nothing moves but time: each write is answered by a watch event, which may lead to more.
func (c *cluster) settle() {
	synctest.Wait()
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

func (c *cluster) after(d time.Duration) {
	time.Sleep(d)
	c.settle()
}

func (c *cluster) create(text string) *v1.Pod {
	c.t.Helper()
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		c.t.Fatal(err)
	}
	pod.Namespace, pod.UID, pod.Spec.NodeName, pod.Generation = "default", types.UID("uid-"+pod.Name), "n1", 1
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	}
	made, err := c.api.CoreV1().Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.settle()
	return made
}

func (c *cluster) pod(name string) *v1.Pod {
	c.t.Helper()
	pod, err := c.api.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// mark deletes a pod gracefully, as the API server does: it marks it, and the agent does the rest.
func (c *cluster) mark(name string, seconds int64) {
	c.t.Helper()
	pod := c.pod(name)
	now := metav1.Now()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &seconds
	if _, err := c.api.CoreV1().Pods("default").Update(c.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
}

func (c *cluster) exit(pod, name string, code int32) {
	c.t.Helper()
	if err := c.cri.Exit(pod, name, code, ""); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
}

// stands tells how a pod stands, on one line.
func (c *cluster) stands(name string) string {
	c.t.Helper()
	pod := c.pod(name)
	out := []string{string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		out = append(out, pod.Status.Reason)
	}
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			state := "?"
			switch {
			case s.State.Running != nil:
				state = "running"
			case s.State.Waiting != nil:
				state = s.State.Waiting.Reason
			case s.State.Terminated != nil:
				state = fmt.Sprintf("%s(%d)", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
			}
			ready := ""
			if s.Ready {
				ready = "+"
			}
			out = append(out, fmt.Sprintf("%s%s=%s/%d", s.Name, ready, state, s.RestartCount))
		}
	}
	return strings.Join(out, " ")
}

func (c *cluster) expect(name, want string) {
	c.t.Helper()
	if got := c.stands(name); got != want {
		c.t.Errorf("pod %s stands %q, want %q", name, got, want)
	}
}

func (c *cluster) expectJournal(want ...string) {
	c.t.Helper()
	if got := c.cri.Journal(); !slices.Equal(got, want) {
		c.t.Errorf("the runtime was told\n\t%q\nwant\n\t%q", got, want)
	}
}

// events are the reasons and messages of all events on pods, in order.
func (c *cluster) events(name string) []string {
	c.t.Helper()
	list, err := c.api.CoreV1().Events("default").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	slices.SortStableFunc(list.Items, func(a, b v1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			out = append(out, e.Type+" "+e.Reason+": "+e.Message)
		}
	}
	return out
}

type ctx = context.Context

var unimplemented = status.Error(codes.Unimplemented, "no events")
