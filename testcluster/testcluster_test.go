package testcluster_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bayplan/bayplan/testcluster"
)

func TestStart(t *testing.T) {
	begin := time.Now()
	cluster := testcluster.Start(t)
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "hello"}}},
	}
	pod, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after %s: %s %s", time.Since(begin), pod.UID, pod.Status.Phase)
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || pod.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("defaults are missing: %+v", pod)
	}
}

// TestTwenty: clusters of one process do not know of each other.
func TestTwenty(t *testing.T) {
	for i := range 20 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			client := kubernetes.NewForConfigOrDie(testcluster.Start(t).Config())
			own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("of-%d", i)}}
			if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				if item.Name != own.Name && item.Name != "kube-root-ca.crt" {
					t.Errorf("another cluster's %s", item.Name)
				}
			}
		})
	}
}

func TestRestart(t *testing.T) {
	cluster := testcluster.Start(t)
	before := cluster.Config()
	client := kubernetes.NewForConfigOrDie(before)
	made, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Restart()
	// The same client goes on.
	got, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil || got.UID != made.UID {
		t.Errorf("after a restart: %v, %v", got, err)
	}
	if cluster.Config().Host != before.Host {
		t.Errorf("the cluster moved from %s to %s", before.Host, cluster.Config().Host)
	}
}

func TestKubeconfig(t *testing.T) {
	cluster := testcluster.Start(t)
	file := cluster.Kubeconfig()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if cluster.Kubeconfig() != file {
		t.Error("asked twice, it is another file")
	}
}

func BenchmarkStart(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		testcluster.Start(b)
	}
}
