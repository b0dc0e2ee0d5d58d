//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

// These are figures of the whole process: API server, store and controllers. The scheduler is left out, as there are no nodes. Run each with -benchtime 1x:
//
//	go test -run '^$' -bench Controllers -benchtime 1x ./internal/cluster

const (
	benchPods    = 5000
	benchObjects = 10000
	benchSets    = 1000
	idleTime     = 20 * time.Second
)

type benchCluster struct {
	b      *testing.B
	client kubernetes.Interface
	pods   metadata.ResourceInterface
}

func startBench(b *testing.B) *benchCluster {
	b.Helper()
	c, err := Start(b.Context(), Config{DataDir: b.TempDir(), BindAddress: "127.0.0.1", NoScheduler: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			b.Errorf("stop: %v", err)
		}
	})
	config := c.Admin()
	config.QPS = -1
	return &benchCluster{b: b, client: kubernetes.NewForConfigOrDie(config), pods: metadata.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("default")}
}

// cpu is the processor time that the process has used.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure reports the processor seconds that f takes.
func measure(b *testing.B, f func()) {
	before := cpu(b)
	f()
	b.ReportMetric((cpu(b) - before).Seconds(), "cpu-s/op")
}

// awaitPods counts pods as they come, until there are as many as wanted.
func (c *benchCluster) awaitPods(want int) {
	c.b.Helper()
	w, err := c.pods.Watch(c.b.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		c.b.Fatal(err)
	}
	defer w.Stop()
	there := map[string]bool{}
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			c.b.Fatalf("the watch of pods says %+v", event.Object)
		}
		if there[pod.Name] = true; len(there) == want {
			return
		}
	}
	c.b.Fatalf("the watch of pods ended at %d of %d", len(there), want)
}

func (c *benchCluster) deploy(name string, replicas int32) {
	c.b.Helper()
	if _, err := c.client.AppsV1().Deployments("default").Create(c.b.Context(), deployment(name, replicas), metav1.CreateOptions{}); err != nil {
		c.b.Fatal(err)
	}
}

// many calls f for each number, sixteen at a time.
func (c *benchCluster) many(count int, f func(ctx context.Context, number int) error) {
	c.b.Helper()
	var group sync.WaitGroup
	errs := make([]error, 16)
	for worker := range errs {
		group.Go(func() {
			for number := worker; number < count && errs[worker] == nil; number += len(errs) {
				errs[worker] = f(c.b.Context(), number)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		c.b.Fatal(err)
	}
}

// BenchmarkControllers5000Replicas: from the Deployment to the last of its pods.
func BenchmarkControllers5000Replicas(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := startBench(b)
		measure(b, func() {
			c.deploy("big", benchPods)
			c.awaitPods(benchPods)
		})
	}
}

// BenchmarkControllersIdle: the share of a processor that a cluster with 5,000 pods takes when nothing happens.
func BenchmarkControllersIdle(b *testing.B) {
	for b.Loop() {
		c := startBench(b)
		c.deploy("big", benchPods)
		c.awaitPods(benchPods)
		<-time.After(idleTime) // what the creation leaves to do
		before := cpu(b)
		<-time.After(idleTime)
		b.ReportMetric(100*(cpu(b)-before).Seconds()/idleTime.Seconds(), "%cpu")
	}
}

// BenchmarkControllersScale1000: one pod more in each of 1,000 Deployments.
func BenchmarkControllersScale1000(b *testing.B) {
	for b.Loop() {
		c := startBench(b)
		c.many(benchSets, func(ctx context.Context, number int) error {
			_, err := c.client.AppsV1().Deployments("default").Create(ctx, deployment(fmt.Sprint("d", number), 1), metav1.CreateOptions{})
			return err
		})
		c.awaitPods(benchSets)
		measure(b, func() {
			c.many(benchSets, func(ctx context.Context, number int) error {
				patch := []byte(`{"spec":{"replicas":2}}`)
				_, err := c.client.AppsV1().Deployments("default").Patch(ctx, fmt.Sprint("d", number), types.MergePatchType, patch, metav1.PatchOptions{})
				return err
			})
			c.awaitPods(2 * benchSets)
		})
	}
}

// BenchmarkControllersNamespace: from the deletion of a namespace with 10,000 ConfigMaps until it is gone.
func BenchmarkControllersNamespace(b *testing.B) {
	for b.Loop() {
		c := startBench(b)
		namespaces := c.client.CoreV1().Namespaces()
		if _, err := namespaces.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "full"}}, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		c.many(benchObjects, func(ctx context.Context, number int) error {
			_, err := c.client.CoreV1().ConfigMaps("full").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", number)}}, metav1.CreateOptions{})
			return err
		})
		w, err := namespaces.Watch(b.Context(), metav1.ListOptions{FieldSelector: "metadata.name=full"})
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		measure(b, func() {
			if err := namespaces.Delete(b.Context(), "full", metav1.DeleteOptions{}); err != nil {
				b.Fatal(err)
			}
			for event := range w.ResultChan() {
				if event.Type == "DELETED" {
					break
				}
			}
		})
		w.Stop()
		b.ReportMetric(time.Since(begin).Seconds(), "s/deletion")
	}
}
