package serviceaccount

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver/admission/admissiontest"
)

// sameName always ends names in the same way.
type sameName struct{}

func (sameName) GenerateName(base string) string { return base + "abcde" }

func newPlugin(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
	p, err := New(client, factory, clock.RealClock{}, sameName{})
	if err != nil {
		panic(err)
	}
	return p
}

func TestTranscripts(t *testing.T) { admissiontest.Run(t, newPlugin) }

func newPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
}

// TestWait: a pod that comes before its namespace's account waits for it, and not longer than a second.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		plugin := newPlugin(client, factory).(*Plugin)
		factory.StartWithContext(t.Context())
		factory.WaitForCacheSync(t.Context().Done())
		answer := make(chan error)
		admit := func() {
			answer <- plugin.Admit(t.Context(), admissiontest.Attributes(t, admission.Create, newPod(), nil, ""), nil)
		}

		begin := time.Now()
		go admit()
		err := <-answer
		if waited := time.Since(begin); waited != patience || err == nil || !strings.Contains(err.Error(), `error looking up service account default/default: serviceaccount "default" not found`) {
			t.Errorf("without an account, after %s: %v", waited, err)
		}
		begin = time.Now()
		go admit()
		time.Sleep(patience / 4)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultAccount, Namespace: "default"}}
		if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if err := <-answer; err != nil || time.Since(begin) != patience/4 {
			t.Errorf("with an account that came after %s: %v after %s", patience/4, err, time.Since(begin))
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultAccount, Namespace: "default"}}
	plugin := admissiontest.Start(b, newPlugin, []runtime.Object{account}, nil).(*Plugin)
	pod := newPod()
	b.ReportAllocs()
	for b.Loop() {
		a := admissiontest.Attributes(b, admission.Create, pod.DeepCopy(), nil, "")
		if err := plugin.Admit(b.Context(), a, nil); err != nil {
			b.Fatal(err)
		}
	}
}
