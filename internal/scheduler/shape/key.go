package shape

import (
	"encoding/binary"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// key writes what a shape is made of as bytes, such that two pods write the same bytes exactly if placement cannot tell
// them apart. Every string carries its length and every list its count, so that no two different pods run together.
type key struct {
	buf   []byte
	names []string
}

func (k *key) number(n int64) { k.buf = binary.AppendVarint(k.buf, n) }

func (k *key) string(s string) {
	k.number(int64(len(s)))
	k.buf = append(k.buf, s...)
}

func (k *key) strings(list []string) {
	k.number(int64(len(list)))
	for _, s := range list {
		k.string(s)
	}
}

func (k *key) bool(b bool) {
	if b {
		k.number(1)
		return
	}
	k.number(0)
}

func (k *key) labels(m map[string]string) {
	k.number(int64(len(m)))
	k.names = slices.AppendSeq(k.names[:0], maps.Keys(m))
	slices.Sort(k.names)
	for _, name := range k.names {
		k.string(name)
		k.string(m[name])
	}
}

func (k *key) class(pod *v1.Pod) {
	k.string(pod.Namespace)
	k.labels(pod.Labels)
}

func (k *key) sums(s *sums) {
	k.number(int64(len(s.requests)))
	for _, r := range s.requests {
		k.number(int64(r.Resource))
		k.number(r.Amount)
	}
	for _, amount := range [...]int64{s.scoring[CPU], s.scoring[Memory], s.counted[CPU], s.counted[Memory]} {
		k.number(amount)
	}
}

func (k *key) tolerations(list []v1.Toleration) {
	k.number(int64(len(list)))
	for i := range list {
		k.string(list[i].Key)
		k.string(string(list[i].Operator))
		k.string(list[i].Value)
		k.string(string(list[i].Effect))
	}
}

func (k *key) containers(list []v1.Container) {
	k.number(int64(len(list)))
	for i := range list {
		k.string(list[i].Image)
		k.bool(list[i].RestartPolicy != nil && *list[i].RestartPolicy == v1.ContainerRestartPolicyAlways)
		for j := range list[i].Ports {
			if port := &list[i].Ports[j]; port.HostPort > 0 {
				k.number(int64(port.HostPort))
				k.string(port.HostIP)
				k.string(string(port.Protocol))
			}
		}
		k.number(-1)
	}
}

func (k *key) images(volumes []v1.Volume) {
	for i := range volumes {
		if volumes[i].Image != nil {
			k.string(volumes[i].Image.Reference)
		}
	}
	k.number(-1)
}

func (k *key) spread(list []v1.TopologySpreadConstraint) {
	k.number(int64(len(list)))
	for i := range list {
		c := &list[i]
		k.number(int64(c.MaxSkew))
		k.string(c.TopologyKey)
		k.string(string(c.WhenUnsatisfiable))
		k.selector(c.LabelSelector)
		k.strings(c.MatchLabelKeys)
		k.optional(c.MinDomains)
		k.policy(c.NodeAffinityPolicy)
		k.policy(c.NodeTaintsPolicy)
	}
}

func (k *key) optional(n *int32) {
	k.bool(n != nil)
	if n != nil {
		k.number(int64(*n))
	}
}

func (k *key) policy(p *v1.NodeInclusionPolicy) {
	k.bool(p != nil)
	if p != nil {
		k.string(string(*p))
	}
}

func (k *key) selector(s *metav1.LabelSelector) {
	k.bool(s != nil)
	if s == nil {
		return
	}
	k.labels(s.MatchLabels)
	k.number(int64(len(s.MatchExpressions)))
	for i := range s.MatchExpressions {
		k.string(s.MatchExpressions[i].Key)
		k.string(string(s.MatchExpressions[i].Operator))
		k.strings(s.MatchExpressions[i].Values)
	}
}

func (k *key) term(t *v1.PodAffinityTerm) {
	k.string(t.TopologyKey)
	k.selector(t.LabelSelector)
	k.selector(t.NamespaceSelector)
}

func (k *key) podTerms(list []v1.PodAffinityTerm) {
	k.number(int64(len(list)))
	for i := range list {
		k.strings(list[i].Namespaces)
		k.term(&list[i])
	}
}

func (k *key) weightedTerms(list []v1.WeightedPodAffinityTerm) {
	k.number(int64(len(list)))
	for i := range list {
		k.number(int64(list[i].Weight))
		k.strings(list[i].PodAffinityTerm.Namespaces)
		k.term(&list[i].PodAffinityTerm)
	}
}

func (k *key) nodeTerm(t *v1.NodeSelectorTerm) {
	for _, list := range [][]v1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		k.number(int64(len(list)))
		for i := range list {
			k.string(list[i].Key)
			k.string(string(list[i].Operator))
			k.strings(list[i].Values)
		}
	}
}

func (k *key) affinity(a *v1.Affinity) {
	k.bool(a != nil)
	if a == nil {
		return
	}
	k.nodeAffinity(a.NodeAffinity)
	k.bool(a.PodAffinity != nil)
	if a.PodAffinity != nil {
		k.podTerms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		k.weightedTerms(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	k.bool(a.PodAntiAffinity != nil)
	if a.PodAntiAffinity != nil {
		k.podTerms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		k.weightedTerms(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (k *key) nodeAffinity(a *v1.NodeAffinity) {
	k.bool(a != nil)
	if a == nil {
		return
	}
	k.bool(a.RequiredDuringSchedulingIgnoredDuringExecution != nil)
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		k.number(int64(len(required.NodeSelectorTerms)))
		for i := range required.NodeSelectorTerms {
			k.nodeTerm(&required.NodeSelectorTerms[i])
		}
	}
	k.number(int64(len(a.PreferredDuringSchedulingIgnoredDuringExecution)))
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		k.number(int64(a.PreferredDuringSchedulingIgnoredDuringExecution[i].Weight))
		k.nodeTerm(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
}
