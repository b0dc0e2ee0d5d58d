package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func labelSelector(set map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: set}
}

// maker makes random objects. Values are few, so that they meet each other often.
type maker struct {
	*rand.Rand
	serial int
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func (m *maker) name(kind string, n int) string { return fmt.Sprintf("%s%d", kind, m.IntN(n)) }

func (m *maker) node(name string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	if m.chance(85) {
		n.Labels[v1.LabelTopologyZone] = m.name("zone", 4)
	}
	if m.chance(60) {
		n.Labels["disk"] = m.name("disk", 3)
	}
	if m.chance(50) {
		n.Labels["cores"] = fmt.Sprint(m.IntN(20))
	}
	effects := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule, v1.TaintEffectPreferNoSchedule}
	for range m.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{
			Key: m.name("taint", 3), Value: m.name("v", 2), Effect: effects[m.IntN(len(effects))],
		})
	}
	n.Spec.Unschedulable = m.chance(7)
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: *resource.NewMilliQuantity(int64(1+m.IntN(8))*1000, resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(int64(1+m.IntN(16))<<30, resource.BinarySI),
		v1.ResourcePods: *resource.NewQuantity(int64(3+m.IntN(12)), resource.DecimalSI),
	}
	if m.chance(30) {
		n.Status.Allocatable["example.com/gpu"] = *resource.NewQuantity(int64(m.IntN(4)), resource.DecimalSI)
	}
	if m.chance(5) {
		delete(n.Status.Allocatable, v1.ResourceMemory)
	}
	for i := range 4 {
		if m.chance(40) {
			n.Status.Images = append(n.Status.Images, v1.ContainerImage{
				Names: []string{fmt.Sprintf("image%d:latest", i), fmt.Sprintf("image%d@sha256:abc", i)}, SizeBytes: int64(100+i*300) << 20,
			})
		}
	}
	return n
}

func (m *maker) pod() *v1.Pod {
	m.serial++
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("pod%d", m.serial), UID: types.UID(fmt.Sprintf("uid%d", m.serial)), Namespace: m.name("ns", 3),
		Labels: map[string]string{"app": m.name("app", 4), "tier": m.name("tier", 2)},
	}}
	for i := range 1 + m.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, m.container(fmt.Sprintf("c%d", i)))
	}
	if m.chance(20) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists})
	}
	for range m.IntN(3) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{
			Key: m.name("taint", 3), Operator: v1.TolerationOpExists,
			Effect: []v1.TaintEffect{"", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule}[m.IntN(3)],
		})
	}
	m.addNodeAffinity(p)
	m.addPodAffinity(p)
	for range max(0, m.IntN(5)-2) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, m.spread())
	}
	return p
}

func (m *maker) container(name string) v1.Container {
	c := v1.Container{Name: name, Image: m.name("image", 5), Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	if m.chance(80) {
		c.Resources.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(m.IntN(15))*100, resource.DecimalSI)
	}
	if m.chance(70) {
		c.Resources.Requests[v1.ResourceMemory] = *resource.NewQuantity(int64(m.IntN(20))<<27, resource.BinarySI)
	}
	if m.chance(8) {
		c.Resources.Requests["example.com/gpu"] = quantity("1")
	}
	if m.chance(12) {
		c.Ports = append(c.Ports, v1.ContainerPort{
			HostPort: int32(8000 + m.IntN(2)), HostIP: []string{"", "10.0.0.1", "10.0.0.2"}[m.IntN(3)],
			Protocol: []v1.Protocol{"", v1.ProtocolUDP}[m.IntN(2)],
		})
	}
	return c
}

func (m *maker) nodeTerm() v1.NodeSelectorTerm {
	pick := []v1.NodeSelectorRequirement{
		{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"disk0", m.name("disk", 3)}},
		{Key: "disk", Operator: v1.NodeSelectorOpNotIn, Values: []string{m.name("disk", 3)}},
		{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpExists},
		{Key: "disk", Operator: v1.NodeSelectorOpDoesNotExist},
		{Key: "cores", Operator: v1.NodeSelectorOpGt, Values: []string{fmt.Sprint(m.IntN(15))}},
		{Key: "cores", Operator: v1.NodeSelectorOpLt, Values: []string{fmt.Sprint(5 + m.IntN(15))}},
	}
	term := v1.NodeSelectorTerm{}
	for range m.IntN(3) {
		term.MatchExpressions = append(term.MatchExpressions, pick[m.IntN(len(pick))])
	}
	if m.chance(12) {
		term.MatchFields = []v1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{m.name("node", 12)}},
		}
	}
	return term
}

func (m *maker) addNodeAffinity(p *v1.Pod) {
	if m.chance(15) {
		p.Spec.NodeSelector = map[string]string{"disk": m.name("disk", 3)}
	}
	if !m.chance(40) {
		return
	}
	a := &v1.NodeAffinity{}
	if m.chance(50) {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		for range 1 + m.IntN(2) {
			terms := &a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*terms = append(*terms, m.nodeTerm())
		}
	}
	for range m.IntN(3) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: int32(1 + m.IntN(100)), Preference: m.nodeTerm()})
	}
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: a}
}

func (m *maker) podTerm() v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{
		TopologyKey:   []string{v1.LabelHostname, v1.LabelTopologyZone, "disk"}[m.IntN(3)],
		LabelSelector: m.selector(),
	}
	if m.chance(20) {
		t.Namespaces = []string{"ns1", "ns0"}
	}
	if m.chance(20) {
		t.NamespaceSelector = labelSelector(map[string]string{"team": m.name("team", 2)})
	}
	if m.chance(5) {
		t.NamespaceSelector = &metav1.LabelSelector{}
	}
	return t
}

func (m *maker) selector() *metav1.LabelSelector {
	switch m.IntN(4) {
	case 0:
		return labelSelector(map[string]string{"tier": m.name("tier", 2), "app": m.name("app", 4)})
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{m.name("app", 4)}},
		}}
	}
	return labelSelector(map[string]string{"app": m.name("app", 4)})
}

func (m *maker) addPodAffinity(p *v1.Pod) {
	if !m.chance(40) {
		return
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	weighted := func() (out []v1.WeightedPodAffinityTerm) {
		for range m.IntN(3) {
			out = append(out, v1.WeightedPodAffinityTerm{Weight: int32(1 + m.IntN(100)), PodAffinityTerm: m.podTerm()})
		}
		return out
	}
	required := func() (out []v1.PodAffinityTerm) {
		for range max(0, m.IntN(4)-1) {
			out = append(out, m.podTerm())
		}
		return out
	}
	if m.chance(40) {
		p.Spec.Affinity.PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted()}
		if m.chance(40) {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required()
		}
	}
	if m.chance(60) {
		p.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted()}
		if m.chance(50) {
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required()
		}
	}
}

func (m *maker) spread() v1.TopologySpreadConstraint {
	c := v1.TopologySpreadConstraint{
		MaxSkew: int32(1 + m.IntN(3)), TopologyKey: []string{v1.LabelHostname, v1.LabelTopologyZone, "disk"}[m.IntN(3)],
		WhenUnsatisfiable: []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}[m.IntN(2)],
		LabelSelector:     m.selector(),
	}
	honor, ignore := v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore
	if m.chance(30) {
		c.NodeTaintsPolicy = []*v1.NodeInclusionPolicy{&honor, &ignore}[m.IntN(2)]
	}
	if m.chance(30) {
		c.NodeAffinityPolicy = []*v1.NodeInclusionPolicy{&honor, &ignore}[m.IntN(2)]
	}
	if c.WhenUnsatisfiable == v1.DoNotSchedule && m.chance(20) {
		domains := int32(1 + m.IntN(5))
		c.MinDomains = &domains
	}
	return c
}

func podName(p *v1.Pod) string { return strings.Join([]string{p.Namespace, p.Name}, "/") }
