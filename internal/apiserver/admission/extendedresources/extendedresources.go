// Package extendedresources is the admission plugin ExtendedResourceToleration, which is off by default: a pod that asks for "example.com/device" tolerates the taint of that
// name, so that nodes with devices can be kept for pods that use them.
package extendedresources

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "ExtendedResourceToleration"

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
	names := sets.New[corev1.ResourceName]()
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if isExtended(name) {
					names.Insert(name)
				}
			}
		}
	}
	for _, name := range sets.List(names) {
		tolerate(&pod.Spec, corev1.Toleration{Key: string(name), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return nil
}

// isExtended: an extended resource is one of somebody's domain that is not Kubernetes'.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}

// tolerate adds a toleration. One for the same taints that is limited in time is replaced.
func tolerate(pod *corev1.PodSpec, toleration corev1.Toleration) {
	at := slices.IndexFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) })
	switch {
	case at < 0:
		pod.Tolerations = append(pod.Tolerations, toleration)
	case !apiequality.Semantic.DeepEqual(pod.Tolerations[at], toleration):
		pod.Tolerations[at] = toleration
	}
}
