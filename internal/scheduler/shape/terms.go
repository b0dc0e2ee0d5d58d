package shape

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Term is an inter-pod affinity or anti-affinity term. Equal terms of equal namespaces are one *Term.
type Term struct {
	// Namespaces are sorted; the pod's own if the term names none and has no namespace selector.
	Namespaces []string
	// NamespaceSelector is nil if the term has none.
	NamespaceSelector labels.Selector
	Selector          *Selector
	TopologyKey       string

	key  string
	refs int
}

// WeightedTerm is a preferred term and what it is worth.
type WeightedTerm struct {
	*Term
	Weight int64
}

// Matches reports whether the term selects pods of a class; namespace holds the labels of the class's namespace.
func (t *Term) Matches(class *Class, namespace labels.Set) bool {
	if _, found := slices.BinarySearch(t.Namespaces, class.Namespace); !found {
		if t.NamespaceSelector == nil || !t.NamespaceSelector.Matches(namespace) {
			return false
		}
	}
	return t.Selector.Selects(class.Labels)
}

// SpreadConstraint is one topology spread constraint.
type SpreadConstraint struct {
	MaxSkew     int32
	TopologyKey string
	// Hard stands for DoNotSchedule.
	Hard       bool
	Selector   *Selector
	MinDomains int32
	// HonorAffinity and HonorTaints tell which nodes count: those that the pod selects, those that it tolerates.
	HonorAffinity, HonorTaints bool
}

// CompileSpread compiles topology spread constraints of pods with the given labels.
func CompileSpread(list []v1.TopologySpreadConstraint, own map[string]string) []SpreadConstraint {
	var out []SpreadConstraint
	for i := range list {
		c := &list[i]
		constraint := SpreadConstraint{
			MaxSkew: c.MaxSkew, TopologyKey: c.TopologyKey, Hard: c.WhenUnsatisfiable == v1.DoNotSchedule,
			Selector: NewSelector(withKeys(selector(c.LabelSelector), c.MatchLabelKeys, own)), MinDomains: 1, HonorAffinity: true,
		}
		if c.MinDomains != nil {
			constraint.MinDomains = *c.MinDomains
		}
		if c.NodeAffinityPolicy != nil {
			constraint.HonorAffinity = *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor
		}
		if c.NodeTaintsPolicy != nil {
			constraint.HonorTaints = *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
		}
		out = append(out, constraint)
	}
	return out
}

// withKeys narrows a selector to pods with the same values of the given labels. The API server has usually done so
// already; doing it twice changes nothing.
func withKeys(s labels.Selector, keys []string, own map[string]string) labels.Selector {
	for _, key := range keys {
		value, ok := own[key]
		if !ok {
			continue
		}
		if r, err := labels.NewRequirement(key, selection.In, []string{value}); err == nil {
			s = s.Add(*r)
		}
	}
	return s
}

// selector parses a label selector. A missing one selects nothing, and so does one that cannot be parsed.
func selector(s *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

func (t *Table) terms(pod *v1.Pod, list []v1.PodAffinityTerm) []*Term {
	var out []*Term
	for i := range list {
		out = append(out, t.term(pod, &list[i]))
	}
	return out
}

func (t *Table) weighted(pod *v1.Pod, list []v1.WeightedPodAffinityTerm) []WeightedTerm {
	var out []WeightedTerm
	for i := range list {
		if list[i].Weight != 0 {
			out = append(out, WeightedTerm{Term: t.term(pod, &list[i].PodAffinityTerm), Weight: int64(list[i].Weight)})
		}
	}
	return out
}

func (t *Table) term(pod *v1.Pod, term *v1.PodAffinityTerm) *Term {
	namespaces := slices.Clone(term.Namespaces)
	if len(namespaces) == 0 && term.NamespaceSelector == nil {
		namespaces = []string{pod.Namespace}
	}
	slices.Sort(namespaces)
	k := key{}
	k.strings(namespaces)
	k.term(term)
	if known, ok := t.termIndex[string(k.buf)]; ok {
		known.refs++
		return known
	}
	compiled := &Term{
		Namespaces: namespaces, Selector: NewSelector(selector(term.LabelSelector)), TopologyKey: term.TopologyKey,
		key: string(k.buf), refs: 1,
	}
	if term.NamespaceSelector != nil {
		compiled.NamespaceSelector = selector(term.NamespaceSelector)
	}
	t.termIndex[compiled.key] = compiled
	return compiled
}
