package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/scheduler/explain"
)

// TestExplain asks the scheduler, through the API server, why a pod has no node.
func TestExplain(t *testing.T) {
	_, client := start(t, local(t))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "lonely"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "hello:1"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func(name string) (string, error) {
		data, err := client.CoreV1().RESTClient().Get().AbsPath(explain.Path).Param("namespace", "default").Param("pod", name).DoRaw(t.Context())
		return string(data), err
	}
	var answer string
	await(t, "the scheduler's word on the pod", func() (done bool, err error) {
		answer, err = ask("lonely")
		if apierrors.IsNotFound(err) {
			// The scheduler has not heard of the pod yet.
			return false, nil
		}
		return strings.Contains(answer, `"unschedulable"`), err
	})
	if !strings.Contains(answer, "no nodes available to schedule pods") {
		t.Errorf("the answer is %s", answer)
	}
	if _, err := ask("none"); !apierrors.IsNotFound(err) {
		t.Errorf("asking for a pod that is not there gives %v", err)
	}
}
