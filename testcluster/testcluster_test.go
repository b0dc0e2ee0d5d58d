package testcluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
