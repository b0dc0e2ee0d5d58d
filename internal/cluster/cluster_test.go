package cluster

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/internal/datadir"
)

func start(t *testing.T, config Config) (*Cluster, kubernetes.Interface) {
	t.Helper()
	c, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c, kubernetes.NewForConfigOrDie(c.Admin())
}

func local(t *testing.T) Config { return Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1"} }

func TestSecondStartBringsEverythingBack(t *testing.T) {
	config := local(t)
	c, client := start(t, config)
	kept, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, client := start(t, config)
	got, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || got.UID != kept.UID || got.ResourceVersion != kept.ResourceVersion {
		t.Errorf("after a restart: %v, %v; want %v", got, err, kept)
	}
	if string(again.Admin().CertData) != string(c.Admin().CertData) {
		t.Error("the kubeconfig of the first start is no longer valid")
	}
}

// TestStopEndsWatches: a client that watches does not hold up the cluster's end.
func TestStopEndsWatches(t *testing.T) {
	c, client := start(t, local(t))
	w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	begin := time.Now()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() {
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s to stop", took)
	}
}

func TestDataDirectoryInUse(t *testing.T) {
	config := local(t)
	_, client := start(t, config)
	if _, err := Start(t.Context(), config); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("second start: %v, want ErrInUse", err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the first cluster was disturbed: %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config := local(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	config.Port, _ = strconv.Atoi(port)
	if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "--port") || !strings.Contains(err.Error(), port) {
		t.Errorf("%v, want an error that names the port and the flag", err)
	}
	// Nothing was left that keeps the directory.
	config.Port = 0
	start(t, config)
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	config := local(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, config); err == nil {
		t.Fatal("started although it was cancelled")
	}
	start(t, config)
}

// TestControllersWork: a Deployment gets its pods, and its deletion takes them away; they stay Pending with a reason, as there is no node.
func TestControllersWork(t *testing.T) {
	_, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	unschedulable := map[string]bool{}
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("the watch says %+v", event.Object)
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && condition.Message == "no nodes available to schedule pods" {
				unschedulable[pod.Name] = true
			}
		}
		if len(unschedulable) == 2 {
			break
		}
	}
	if len(unschedulable) != 2 {
		t.Fatalf("pods that say why they are pending: %v, want two", unschedulable)
	}
	if err := client.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if event.Type == "DELETED" {
			delete(unschedulable, event.Object.(*corev1.Pod).Name)
		}
		if len(unschedulable) == 0 {
			return
		}
	}
	t.Errorf("left after the Deployment: %v", unschedulable)
}

func TestNamespaceGoesWithItsContents(t *testing.T) {
	_, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "temporary"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("temporary").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := namespaces.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=temporary"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := namespaces.Delete(ctx, "temporary", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if event.Type == "DELETED" {
			if _, err := client.CoreV1().Secrets("temporary").Get(ctx, "s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the secret outlived its namespace: %v", err)
			}
			return
		}
	}
	t.Error("the namespace did not go")
}

func TestMergedTimeline(t *testing.T) {
	var marks []string
	config := local(t)
	config.Report = func(m Mark) { marks = append(marks, m.Part) }
	start(t, config)
	if got := strings.Join(marks, "; "); got != "etcd; api server; controllers, scheduler" {
		t.Errorf("parts in the order of readiness: %s", got)
	}
}
