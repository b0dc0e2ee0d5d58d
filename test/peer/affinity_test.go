package peer

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (m *maker) nodeTerm() v1.NodeSelectorTerm {
	term := v1.NodeSelectorTerm{}
	for range m.IntN(3) {
		term.MatchExpressions = append(term.MatchExpressions, pick(m,
			v1.NodeSelectorRequirement{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"disk0", m.word("disk", 3)}},
			v1.NodeSelectorRequirement{Key: "disk", Operator: v1.NodeSelectorOpNotIn, Values: []string{m.word("disk", 3)}},
			v1.NodeSelectorRequirement{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpExists},
			v1.NodeSelectorRequirement{Key: "disk", Operator: v1.NodeSelectorOpDoesNotExist},
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpGt, Values: []string{fmt.Sprint(m.IntN(15))}},
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpLt, Values: []string{fmt.Sprint(5 + m.IntN(15))}},
		))
	}
	if m.chance(18) {
		term.MatchFields = append(term.MatchFields, v1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: pick(m, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn),
			Values: []string{m.word("node", 12)},
		})
	}
	if len(term.MatchFields) > 0 && m.chance(35) {
		term.MatchFields = append(term.MatchFields, v1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{m.word("node", 12)},
		})
	}
	return term
}

func (m *maker) nodeAffinity(p *v1.Pod) {
	if m.chance(6) && !m.modest {
		p.Spec.NodeSelector = map[string]string{"disk": m.word("disk", 3)}
	}
	if m.chance(60) {
		return
	}
	a := &v1.NodeAffinity{}
	if !m.easy && !m.modest && m.chance(60) {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		terms := &a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for range 1 + m.IntN(2) {
			*terms = append(*terms, m.nodeTerm())
		}
	}
	for range m.IntN(3) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: int32(1 + m.IntN(100)), Preference: m.nodeTerm()})
	}
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: a}
}

func (m *maker) selector() *metav1.LabelSelector {
	switch m.IntN(6) {
	case 0:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": m.word("tier", 2), "app": m.word("app", 4)}}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{m.word("app", 4)}},
		}}
	case 2:
		if m.chance(30) {
			return nil
		}
		if m.chance(30) {
			return &metav1.LabelSelector{}
		}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.word("app", 4)}}
}

func (m *maker) topologyKey() string {
	return pick(m, v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "disk", v1.LabelTopologyRegion)
}

func (m *maker) podTerm() v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{TopologyKey: m.topologyKey(), LabelSelector: m.selector()}
	if m.chance(20) {
		t.Namespaces = []string{"ns1", "ns0"}
	}
	switch {
	case m.chance(20):
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": m.word("team", 2)}}
	case m.chance(8):
		t.NamespaceSelector = &metav1.LabelSelector{}
	}
	return t
}

func (m *maker) podAffinity(p *v1.Pod) {
	if m.chance(60) {
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
		if m.chance(40) && !m.easy && !m.modest {
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

// addSpread adds a constraint, unless the pod has one of the same key and kind already.
func (m *maker) addSpread(p *v1.Pod) {
	c := v1.TopologySpreadConstraint{
		MaxSkew: int32(1 + m.IntN(3)), TopologyKey: m.topologyKey(),
		WhenUnsatisfiable: pick(m, v1.DoNotSchedule, v1.ScheduleAnyway), LabelSelector: m.selector(),
	}
	for _, other := range p.Spec.TopologySpreadConstraints {
		if other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable {
			return
		}
	}
	honor, ignore := v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore
	if m.chance(30) {
		c.NodeTaintsPolicy = pick(m, &honor, &ignore)
	}
	if m.chance(30) {
		c.NodeAffinityPolicy = pick(m, &honor, &ignore)
	}
	if c.WhenUnsatisfiable == v1.DoNotSchedule && m.chance(20) {
		domains := int32(1 + m.IntN(4))
		c.MinDomains = &domains
	}
	if c.LabelSelector != nil && m.chance(25) {
		c.MatchLabelKeys = []string{pick(m, "tier", "version")}
	}
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
}
