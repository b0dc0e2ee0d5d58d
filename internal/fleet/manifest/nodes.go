package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// MaxNodes bounds a group.
const MaxNodes = 100000

// Nodes are the nodes of a group, the first of which has that number.
func Nodes(group *v1alpha1.NodeGroup, first int) ([]*corev1.Node, error) {
	name := group.Name
	if name == "" {
		name = "of a Node"
	}
	if group.Spec.Count < 0 || group.Spec.Count > MaxNodes {
		return nil, fmt.Errorf("NodeGroup %s: spec.count: %d must be from 0 to %d", name, group.Spec.Count, MaxNodes)
	}
	template, err := newTemplate(group)
	if err != nil {
		return nil, fmt.Errorf("NodeGroup %s: spec.template: %w", name, err)
	}
	nodes := make([]*corev1.Node, group.Spec.Count)
	seen := map[string]bool{}
	for i := range nodes {
		if nodes[i], err = template.node(first + i); err != nil {
			return nil, fmt.Errorf("NodeGroup %s: node %d: %w", name, first+i, err)
		}
		if seen[nodes[i].Name] {
			return nil, fmt.Errorf("NodeGroup %s: metadata.name: node %d is called %q like another one; put {index} into the name", name, first+i, nodes[i].Name)
		}
		seen[nodes[i].Name] = true
	}
	return nodes, nil
}

// template makes the nodes of a group.
type template struct {
	group  string
	fields map[string]any
}

func newTemplate(group *v1alpha1.NodeGroup) (*template, error) {
	t := &template{group: group.Name, fields: map[string]any{}}
	if len(group.Spec.Template.Raw) > 0 {
		if err := yaml.Unmarshal(group.Spec.Template.Raw, &t.fields); err != nil {
			return nil, err
		}
	}
	for field, want := range map[string]string{"apiVersion": "v1", "kind": "Node"} {
		if got, ok := t.fields[field]; ok && got != want {
			return nil, fmt.Errorf("%s: %v must be %s", field, got, want)
		}
		t.fields[field] = want
	}
	return t, nil
}

// node is the node with that number, from 1.
func (t *template) node(index int) (*corev1.Node, error) {
	expanded, err := expandAll(t.fields, index, "")
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(expanded)
	if err != nil {
		return nil, err
	}
	n := &corev1.Node{}
	if err := yaml.UnmarshalStrict(data, n); err != nil {
		return nil, err
	}
	if n.Name == "" && t.group != "" {
		n.Name = fmt.Sprintf("%s-%d", t.group, index)
	}
	for _, message := range validation.NameIsDNSSubdomain(n.Name, false) {
		return nil, fmt.Errorf("metadata.name: %q: %s", n.Name, message)
	}
	set := map[string]string{
		v1alpha1.LabelSimulated: "true", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	if t.group != "" {
		set[v1alpha1.LabelNodeGroup] = t.group
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for label, value := range set {
		if _, ok := n.Labels[label]; !ok || label == v1alpha1.LabelSimulated {
			n.Labels[label] = value
		}
	}
	for label, value := range n.Labels {
		for _, message := range utilvalidation.IsValidLabelValue(value) {
			return nil, fmt.Errorf("metadata.labels[%s]: %q: %s", label, value, message)
		}
	}
	return n, nil
}

// expandAll expands the strings of a value, those of annotations excepted.
func expandAll(value any, index int, path string) (any, error) {
	switch v := value.(type) {
	case string:
		text, err := Expand(v, index)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
		}
		return text, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			if path == ".metadata" && key == "annotations" {
				out[key] = inner
				continue
			}
			expanded, err := expandAll(inner, index, path+"."+key)
			if err != nil {
				return nil, err
			}
			out[key] = expanded
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			expanded, err := expandAll(inner, index, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			out[i] = expanded
		}
		return out, nil
	}
	return value, nil
}
