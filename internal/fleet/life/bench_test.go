package life

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// BenchmarkRun is all that the fleet works out for a pod that comes and runs: what it does, its life up to then, and its status.
func BenchmarkRun(b *testing.B) {
	rules, err := behavior.Compile(nil)
	if err != nil {
		b.Fatal(err)
	}
	api := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u", Generation: 1},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "c", Image: "app:1"}}},
	}
	w := &world{up: true}
	b.ReportAllocs()
	for b.Loop() {
		does, err := rules.For(api, nil, 1)
		if err != nil {
			b.Fatal(err)
		}
		p := New(api, does, w, epoch)
		p.Step(epoch)
		if p.Status(epoch).Phase != corev1.PodRunning {
			b.Fatal("the pod does not run")
		}
		p.Step(epoch.Add(time.Second))
	}
}
