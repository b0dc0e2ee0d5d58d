package shape

import (
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// NodeSelector is what a pod requires of its node: every pair of spec.nodeSelector, and one of the terms of the required
// node affinity if there is any.
type NodeSelector struct {
	// All must hold: the pairs of spec.nodeSelector.
	All []NodeRequirement
	// Terms are alternatives. HasTerms tells an affinity without terms, which matches nothing, from no affinity.
	Terms    []NodeTerm
	HasTerms bool
}

// NodeTerm is one node selector term: all of its requirements must hold. A term without any, or one that cannot be
// parsed, matches nothing.
type NodeTerm struct {
	Labels []NodeRequirement
	// Fields are requirements on metadata.name.
	Fields  []NodeRequirement
	Nothing bool
}

// PreferredNode is a preferred node affinity term and what it is worth.
type PreferredNode struct {
	Weight int64
	Term   NodeTerm
}

// NodeRequirement is a test of one label (or, among Fields, of the name) of a node.
type NodeRequirement struct {
	Key      string
	Operator v1.NodeSelectorOperator
	Values   []string

	number int64
}

// Matches tests the value that the node has for the key.
func (r *NodeRequirement) Matches(value string, present bool) bool {
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return present && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpNotIn:
		return !present || !slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return present
	case v1.NodeSelectorOpDoesNotExist:
		return !present
	}
	if !present {
		return false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return (r.Operator == v1.NodeSelectorOpGt) == (number > r.number) && number != r.number
}

// Names returns the only names of nodes that the selector can match, or ok = false if it does not name nodes in every
// alternative. Alternatives that no name can satisfy add none.
func (s *NodeSelector) Names() (names []string, ok bool) {
	if s == nil || !s.HasTerms || len(s.Terms) == 0 {
		return nil, false
	}
	for i := range s.Terms {
		named := s.Terms[i].names()
		if named == nil {
			return nil, false
		}
		names = append(names, named...)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// names returns the names on which all field requirements that name nodes agree; nil if there is no such requirement.
func (t *NodeTerm) names() []string {
	var agreed []string
	for i := range t.Fields {
		if t.Fields[i].Operator != v1.NodeSelectorOpIn {
			continue
		}
		if agreed == nil {
			agreed = append([]string{}, t.Fields[i].Values...)
			continue
		}
		agreed = slices.DeleteFunc(agreed, func(name string) bool { return !slices.Contains(t.Fields[i].Values, name) })
	}
	return agreed
}

// CompileNodeAffinity compiles node affinity that does not come from a pod.
func CompileNodeAffinity(affinity *v1.NodeAffinity) (*NodeSelector, []PreferredNode) {
	spec := &v1.PodSpec{Affinity: &v1.Affinity{NodeAffinity: affinity}}
	return nodeSelector(spec), preferredNodes(spec)
}

// nodeSelector compiles what a pod requires of its node; nil if it requires nothing.
func nodeSelector(spec *v1.PodSpec) *NodeSelector {
	var required *v1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if required == nil && len(spec.NodeSelector) == 0 {
		return nil
	}
	s := &NodeSelector{All: pairs(spec.NodeSelector), HasTerms: required != nil}
	if required != nil {
		for i := range required.NodeSelectorTerms {
			s.Terms = append(s.Terms, nodeTerm(&required.NodeSelectorTerms[i]))
		}
	}
	return s
}

func pairs(selector map[string]string) []NodeRequirement {
	var all []NodeRequirement
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		all = append(all, NodeRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{selector[key]}})
	}
	return all
}

func preferredNodes(spec *v1.PodSpec) []PreferredNode {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var preferred []PreferredNode
	for i := range spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		term := &spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		if term.Weight != 0 {
			preferred = append(preferred, PreferredNode{Weight: int64(term.Weight), Term: nodeTerm(&term.Preference)})
		}
	}
	return preferred
}

func nodeTerm(term *v1.NodeSelectorTerm) NodeTerm {
	labels, good := nodeRequirements(term.MatchExpressions)
	fields, goodFields := nodeRequirements(term.MatchFields)
	for i := range fields {
		operator := fields[i].Operator
		one := len(fields[i].Values) == 1 && (operator == v1.NodeSelectorOpIn || operator == v1.NodeSelectorOpNotIn)
		goodFields = goodFields && one && fields[i].Key == "metadata.name"
	}
	empty := len(labels)+len(fields) == 0
	return NodeTerm{Labels: labels, Fields: fields, Nothing: empty || !good || !goodFields}
}

// nodeRequirements compiles requirements; good is false if one of them can never be tested.
func nodeRequirements(list []v1.NodeSelectorRequirement) (out []NodeRequirement, good bool) {
	good = true
	for _, r := range list {
		requirement := NodeRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values}
		switch r.Operator {
		case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
			good = good && len(r.Values) > 0
		case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
			good = good && len(r.Values) == 0
		case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
			var err error
			if len(r.Values) == 1 {
				requirement.number, err = strconv.ParseInt(r.Values[0], 10, 64)
			}
			good = good && len(r.Values) == 1 && err == nil
		default:
			good = false
		}
		out = append(out, requirement)
	}
	return out, good
}
