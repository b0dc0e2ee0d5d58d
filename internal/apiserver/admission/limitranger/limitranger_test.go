package limitranger

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/bayplan/bayplan/internal/apiserver/admission/admissiontest"
)

func TestTranscripts(t *testing.T) {
	admissiontest.Run(t, func(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
		return New(client, factory, clock.RealClock{})
	})
}

// TestAsk: that a namespace has no ranges is believed for a while, so that not each of its pods asks the API.
func TestAsk(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Unix(0, 0))
	var client kubernetes.Interface
	started := admissiontest.Start(t, func(c kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
		client = c
		return New(c, factory, now)
	}, nil, nil)
	plugin := started.(*Plugin)
	count := func() int {
		ranges, err := plugin.ranges(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		return len(ranges)
	}
	if n := count(); n != 0 {
		t.Errorf("%d ranges before there is one", n)
	}
	limit := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "default"}}
	if _, err := client.CoreV1().LimitRanges("default").Create(t.Context(), limit, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(believed - 1))
	if n := count(); n != 0 {
		t.Errorf("%d ranges: the API was asked again too early", n)
	}
	now.SetTime(now.Now().Add(1))
	if n := count(); n != 1 {
		t.Errorf("%d ranges: what the API said is believed for too long", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	limit := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "default"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(100, resource.DecimalSI)}, Max: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(500, resource.DecimalSI)},
		Default: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(200, resource.DecimalSI)},
	}}}}
	plugin := admissiontest.Start(b, func(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
		return New(client, factory, clock.RealClock{})
	}, []runtime.Object{limit}, nil).(*Plugin)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	b.ReportAllocs()
	for b.Loop() {
		a := admissiontest.Attributes(b, admission.Create, pod.DeepCopy(), nil, "")
		if err := plugin.Admit(b.Context(), a, nil); err != nil {
			b.Fatal(err)
		}
		if err := plugin.Validate(b.Context(), a, nil); err != nil {
			b.Fatal(err)
		}
	}
}
