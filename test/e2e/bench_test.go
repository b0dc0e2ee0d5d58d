package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// BenchmarkUp measures whole starts of the program with one node on an empty data directory: from its execution until it says that it is ready, and until a pod whose image is
// there runs; the memory of the process then (PSS), and the median time from a pod's creation to Running over twenty pods, one after the other.
func BenchmarkUp(b *testing.B) {
	var ready, running, memory, pod []float64
	for b.Loop() {
		m := newMachine(b)
		begun := time.Now()
		c := m.up()
		ready = append(ready, time.Since(begun).Seconds()*1000)
		client := m.client()
		m.runPod(client, "first")
		running = append(running, time.Since(begun).Seconds()*1000)
		memory = append(memory, m.pss(c.cmd.Process.Pid))
		for i := range 20 {
			before := time.Now()
			m.runPod(client, fmt.Sprintf("pod-%d", i))
			pod = append(pod, time.Since(before).Seconds()*1000)
		}
		c.stop()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ready), "ready-ms")
	b.ReportMetric(median(running), "first-pod-ms")
	b.ReportMetric(median(memory), "pss-MiB")
	b.ReportMetric(median(pod), "pod-start-ms")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func (m *machine) client() kubernetes.Interface {
	config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		m.t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// runPod creates a pod and returns when it runs.
func (m *machine) runPod(client kubernetes.Interface, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pods := client.CoreV1().Pods("default")
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		m.t.Fatal(err)
	}
	defer w.Stop()
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "hello", Image: "hello:1", ImagePullPolicy: corev1.PullNever}}},
	}, metav1.CreateOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			return
		}
	}
	m.t.Fatalf("pod %s does not run", name)
}

// pss is the memory of a process, in MiB, with shared pages counted in proportion.
func (m *machine) pss(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				m.t.Fatal(err)
			}
			return kib / 1024
		}
	}
	m.t.Fatal("no Pss in smaps_rollup")
	return 0
}
