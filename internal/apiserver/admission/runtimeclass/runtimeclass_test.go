package runtimeclass

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/apiserver/admission/admissiontest"
)

func TestTranscripts(t *testing.T) {
	admissiontest.Run(t, func(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
		return New(client, factory)
	})
}

var tolerations = rapid.Custom(func(t *rapid.T) corev1.Toleration {
	toleration := corev1.Toleration{
		Key:      rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"),
		Operator: rapid.SampledFrom([]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}).Draw(t, "operator"),
		Effect:   rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}).Draw(t, "effect"),
	}
	if toleration.Operator == corev1.TolerationOpEqual {
		toleration.Value = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value")
	}
	if toleration.Effect == corev1.TaintEffectNoExecute && rapid.Bool().Draw(t, "limited") {
		toleration.TolerationSeconds = ptr.To(rapid.Int64Range(0, 3).Draw(t, "seconds"))
	}
	return toleration
})

// TestMergeTolerations: what is left covers all that was given, and nothing is left twice.
func TestMergeTolerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, class := rapid.SliceOfN(tolerations, 0, 4).Draw(t, "pod"), rapid.SliceOfN(tolerations, 0, 4).Draw(t, "class")
		merged := mergeTolerations(pod, class)
		for _, list := range [][]corev1.Toleration{pod, class} {
			for _, given := range list {
				if !anyCovers(merged, given) {
					t.Fatalf("%+v is lost in %+v", given, merged)
				}
			}
		}
		for i, kept := range merged {
			if anyCovers(merged[:i], kept) {
				t.Fatalf("%+v is needless in %+v", kept, merged)
			}
		}
	})
}

func anyCovers(list []corev1.Toleration, t corev1.Toleration) bool {
	for _, other := range list {
		if covers(other, t) {
			return true
		}
	}
	return false
}
