package daemonset

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/bayplan/bayplan/internal/controller"
)

// placement is what a node means to a DaemonSet.
type placement struct {
	shouldRun bool // a pod must be there
	mayStay   bool // one that is there may go on
}

// place finds out whether the daemon belongs on the node: by the template's node name, node selector and required node affinity, and by the node's
// taints. An untolerated NoSchedule taint keeps new daemons away, an untolerated NoExecute taint removes those that run.
func place(ds *appsv1.DaemonSet, node *corev1.Node) placement {
	spec := &ds.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return placement{}
	}
	fits, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(node)
	if err != nil || !fits {
		return placement{}
	}
	out := placement{shouldRun: true, mayStay: true}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || tolerated(taint, spec) {
			continue
		}
		out.shouldRun = false
		if taint.Effect == corev1.TaintEffectNoExecute {
			out.mayStay = false
		}
	}
	return out
}

func tolerated(taint *corev1.Taint, spec *corev1.PodSpec) bool {
	for _, tolerations := range [][]corev1.Toleration{spec.Tolerations, daemonTolerations(spec)} {
		for i := range tolerations {
			if controller.Tolerates(&tolerations[i], taint) {
				return true
			}
		}
	}
	return false
}

// daemonTolerations are what every daemon tolerates: it may be what makes the node ready.
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	tolerations := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	if spec.HostNetwork {
		tolerations = append(tolerations, corev1.Toleration{
			Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return tolerations
}

// podFor is the pod of a revision for a node. The scheduler binds it: the affinity leaves it no other node.
func podFor(ds *appsv1.DaemonSet, node, hash string) *corev1.Pod {
	pod := controller.PodFromTemplate(&ds.Spec.Template, ds, gvk)
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	if generation, found := ds.Annotations[appsv1.DeprecatedTemplateGeneration]; found {
		if _, err := strconv.ParseInt(generation, 10, 64); err == nil {
			pod.Labels["pod-template-generation"] = generation
		}
	}
	pod.Spec.Affinity = withNode(pod.Spec.Affinity, node)
	for _, toleration := range daemonTolerations(&pod.Spec) {
		if !hasToleration(pod.Spec.Tolerations, toleration) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return pod
}

func hasToleration(tolerations []corev1.Toleration, want corev1.Toleration) bool {
	for _, t := range tolerations {
		if t.Key == want.Key && t.Operator == want.Operator && t.Effect == want.Effect && t.Value == want.Value {
			return true
		}
	}
	return false
}

// withNode replaces the required node affinity, which has been checked, by the node's name.
func withNode(affinity *corev1.Affinity, node string) *corev1.Affinity {
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	return affinity
}

// nodeOf is the node that a daemon runs on or was made for.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
