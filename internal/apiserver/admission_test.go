package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// wantForbidden checks that an answer is 403 with a text.
func wantForbidden(t *testing.T, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("want forbidden with %q, got %v", text, err)
	}
}

func TestLimitRanges(t *testing.T) {
	a := startAPI(t)
	_, err := a.client.CoreV1().LimitRanges("default").Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Default: list("cpu", "500m", "memory", "64Mi"), Max: list("cpu", "1")},
			{Type: corev1.LimitTypePod, Max: list("cpu", "1500m")},
			{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "1Gi")},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	pods := a.client.CoreV1().Pods("default")
	pod, err := pods.Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	must(t, err)
	got := pod.Spec.Containers[0].Resources
	if got.Limits.Cpu().String() != "500m" || got.Limits.Memory().String() != "64Mi" || got.Requests.Cpu().String() != "100m" || got.Requests.Memory().String() != "64Mi" {
		t.Errorf("defaults of the range: %+v", got)
	}
	if pod.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("the QoS class does not follow from the defaults: %s", pod.Status.QOSClass)
	}
	big := newPod("big")
	big.Spec.Containers[0].Resources.Limits = list("cpu", "2")
	_, err = pods.Create(t.Context(), big, metav1.CreateOptions{})
	wantForbidden(t, err, "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]")
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1100m")
	_, err = pods.UpdateResize(t.Context(), "p", pod, metav1.UpdateOptions{})
	wantForbidden(t, err, "maximum cpu usage per Container is 1, but limit is 1100m")
	_, err = a.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), newClaim("c", "2Gi"), metav1.CreateOptions{})
	wantForbidden(t, err, "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")
}

func TestRuntimeClasses(t *testing.T) {
	a := startAPI(t)
	_, err := a.client.NodeV1().RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "vm", Overhead: &nodev1.Overhead{PodFixed: list("cpu", "250m")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"vm": "yes"}},
	}, metav1.CreateOptions{})
	must(t, err)
	pod := newPod("p")
	pod.Spec.RuntimeClassName = ptr.To("vm")
	made, err := a.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	if made.Spec.Overhead.Cpu().String() != "250m" || made.Spec.NodeSelector["vm"] != "yes" {
		t.Errorf("what the class asks for is missing: %+v", made.Spec)
	}
	pod.Name, pod.Spec.RuntimeClassName = "q", ptr.To("other")
	_, err = a.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	wantForbidden(t, err, `pods "q" is forbidden: pod rejected: RuntimeClass "other" not found`)
}

// list makes a list of resources of their names and amounts.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func newClaim(name, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", size)},
		},
	}
}
