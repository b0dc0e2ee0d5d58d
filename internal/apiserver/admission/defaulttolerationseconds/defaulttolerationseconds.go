// Package defaulttolerationseconds is the admission plugin DefaultTolerationSeconds: a pod that does not say how long it stays on a node that is not ready or not reachable
// stays for five minutes.
package defaulttolerationseconds

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "DefaultTolerationSeconds"

const seconds = 300

// Plugin admits pods.
type Plugin struct{ *admission.Handler }

// New makes the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Admit implements admission.MutationInterface.
func (*Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods"))
	if !ok {
		return nil
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return speaksOf(t, taint) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](seconds),
			})
		}
	}
	return nil
}

// speaksOf: an empty key or effect means every one.
func speaksOf(t corev1.Toleration, taint string) bool {
	return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
}
