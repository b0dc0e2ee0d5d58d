package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/apiserver"
)

// TestChosenPlugins: plugins can be turned on and off; a pod then has the marks of those that are on.
func TestChosenPlugins(t *testing.T) {
	a := startAPI(t, func(c *apiserver.Config) {
		c.Admission = apiserver.Admission{Enable: []string{"ExtendedResourceToleration"}, Disable: []string{"ServiceAccount", "DefaultTolerationSeconds"}}
	})
	pod := newPod("p")
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("example.com/gpu", "1"), Limits: list("example.com/gpu", "1")}
	pod, err := a.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	if pod.Spec.ServiceAccountName != "" || len(pod.Spec.Volumes) != 0 {
		t.Errorf("an account although the plugin is off: %+v", pod.Spec)
	}
	if len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0].Key != "example.com/gpu" {
		t.Errorf("tolerations: %+v", pod.Spec.Tolerations)
	}
}
