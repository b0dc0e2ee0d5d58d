package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node makes a node of the words cpu=, memory=, pods=, gpu=, labels=a=b,c=d, taint=key:Effect, image=name:MiB,
// unschedulable, feature=.
func Node(t testing.TB, name string, words ...string) *v1.Node {
	a := parse(words)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(a.get("labels", ""))}}
	node.Labels[v1.LabelHostname] = name
	node.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: quantity(t, a.get("cpu", "4")), v1.ResourceMemory: quantity(t, a.get("memory", "8Gi")),
		v1.ResourcePods: quantity(t, a.get("pods", "110")),
	}
	if gpu := a.get("gpu", ""); gpu != "" {
		node.Status.Allocatable["example.com/gpu"] = quantity(t, gpu)
	}
	for _, taint := range a["taint"] {
		key, effect, _ := strings.Cut(taint, ":")
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffect(effect)})
	}
	for _, image := range a["image"] {
		name, size, _ := strings.Cut(image, ":")
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{
			Names: []string{name + ":latest"}, SizeBytes: number(t, size) << 20,
		})
	}
	node.Status.DeclaredFeatures = a["feature"]
	node.Spec.Unschedulable = a["unschedulable"] != nil
	return node
}

// Pod makes a pod of the words cpu=, memory=, gpu=, priority=, labels=, on=NODE, select=, tolerate=KEY, prefer=a=b:W,
// require=a=b, named=NODE, port=, image=, gate, never, spread=KEY:SKEW:hard:a=b, near=KEY:a=b, apart=KEY:a=b,
// like=KEY:a=b:W, dislike=KEY:a=b:W, start=SECONDS, nominated=NODE, scheduler=NAME, claim=, disk= (EBS), host-users.
func Pod(t testing.TB, name string, words ...string) *v1.Pod {
	a := parse(words)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: set(a.get("labels", ""))},
		Spec: v1.PodSpec{
			SchedulerName: a.get("scheduler", v1.DefaultSchedulerName), NodeName: a.get("on", ""), NodeSelector: set(a.get("select", "")),
			Affinity:   &v1.Affinity{NodeAffinity: nodeAffinity(t, a), PodAffinity: &v1.PodAffinity{}, PodAntiAffinity: &v1.PodAntiAffinity{}},
			Containers: []v1.Container{container(t, a)},
		},
		Status: v1.PodStatus{NominatedNodeName: a.get("nominated", "")},
	}
	priority := int32(number(t, a.get("priority", "0")))
	pod.Spec.Priority = &priority
	if start := a.get("start", ""); start != "" {
		at := metav1.Unix(1767225600+number(t, start), 0)
		pod.Status.StartTime = &at
	}
	if a["never"] != nil {
		never := v1.PreemptNever
		pod.Spec.PreemptionPolicy = &never
	}
	if a["gate"] != nil {
		pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/gate"}}
	}
	for _, key := range a["tolerate"] {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
	for _, text := range a["spread"] {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, spread(t, text))
	}
	podAffinity(t, pod.Spec.Affinity, a)
	pod.Spec.Volumes = volumes(a)
	if a["host-users"] != nil {
		// A user namespace with the host's network is what a node must declare.
		no := false
		pod.Spec.HostNetwork, pod.Spec.HostUsers = true, &no
	}
	return pod
}

func container(t testing.TB, a args) v1.Container {
	c := v1.Container{Name: "main", Image: a.get("image", "hello"), Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	for word, name := range map[string]v1.ResourceName{"cpu": v1.ResourceCPU, "memory": v1.ResourceMemory, "gpu": "example.com/gpu"} {
		if text := a.get(word, ""); text != "" {
			c.Resources.Requests[name] = quantity(t, text)
		}
	}
	for _, port := range a["port"] {
		c.Ports = append(c.Ports, v1.ContainerPort{HostPort: int32(number(t, port))})
	}
	return c
}

func nodeAffinity(t testing.TB, a args) *v1.NodeAffinity {
	n := &v1.NodeAffinity{}
	var terms []v1.NodeSelectorTerm
	for _, pair := range a["require"] {
		terms = append(terms, v1.NodeSelectorTerm{MatchExpressions: in(set(pair))})
	}
	for _, name := range a["named"] {
		terms = append(terms, v1.NodeSelectorTerm{MatchFields: in(map[string]string{"metadata.name": name})})
	}
	if terms != nil {
		n.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: terms}
	}
	for _, text := range a["prefer"] {
		pair, weight, _ := strings.Cut(text, ":")
		n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: int32(number(t, weight)), Preference: v1.NodeSelectorTerm{MatchExpressions: in(set(pair))}})
	}
	return n
}

func in(pairs map[string]string) (out []v1.NodeSelectorRequirement) {
	for key, value := range pairs {
		out = append(out, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}})
	}
	return out
}

func spread(t testing.TB, text string) v1.TopologySpreadConstraint {
	parts := strings.SplitN(text, ":", 4)
	c := v1.TopologySpreadConstraint{
		TopologyKey: parts[0], MaxSkew: int32(number(t, parts[1])), WhenUnsatisfiable: v1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: set(parts[3])},
	}
	if parts[2] == "hard" {
		c.WhenUnsatisfiable = v1.DoNotSchedule
	}
	return c
}

func podAffinity(t testing.TB, out *v1.Affinity, a args) {
	term := func(text string) (v1.PodAffinityTerm, int32) {
		parts := strings.SplitN(text+":0", ":", 4)
		return v1.PodAffinityTerm{TopologyKey: parts[0], LabelSelector: &metav1.LabelSelector{MatchLabels: set(parts[1])}},
			int32(number(t, parts[2]))
	}
	for _, text := range a["near"] {
		required, _ := term(text)
		list := &out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, required)
	}
	for _, text := range a["apart"] {
		required, _ := term(text)
		list := &out.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, required)
	}
	for _, text := range a["like"] {
		preferred, weight := term(text)
		list := &out.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: preferred})
	}
	for _, text := range a["dislike"] {
		preferred, weight := term(text)
		list := &out.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: preferred})
	}
}

func quantity(t testing.TB, text string) resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("quantity %q: %v", text, err)
	}
	return q
}

func number(t testing.TB, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("number %q: %w", text, err))
	}
	return n
}
