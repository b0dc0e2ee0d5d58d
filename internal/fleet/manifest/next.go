package manifest

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// Next are as many further nodes of a group as its count says: those of the lowest numbers whose names are not taken yet.
func Next(group *v1alpha1.NodeGroup, taken map[string]bool) ([]*corev1.Node, error) {
	if group.Spec.Count < 0 || group.Spec.Count > MaxNodes {
		return nil, fmt.Errorf("the number of nodes: %d must be from 0 to %d", group.Spec.Count, MaxNodes)
	}
	template, err := newTemplate(group)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	taken = maps.Clone(taken)
	if taken == nil {
		taken = map[string]bool{}
	}
	var nodes []*corev1.Node
	for index, former := 1, ""; len(nodes) < int(group.Spec.Count); index++ {
		n, err := template.node(index)
		if err != nil {
			return nil, fmt.Errorf("template: node %d: %w", index, err)
		}
		switch {
		case n.Name == former && taken[n.Name]:
			return nil, fmt.Errorf("template: metadata.name: the name %q is taken, and all nodes would have it; put {index} into the name", n.Name)
		case index > 2*MaxNodes:
			return nil, fmt.Errorf("template: metadata.name: the names of the first %d nodes are taken; use another one", index)
		case !taken[n.Name]:
			nodes = append(nodes, n)
			taken[n.Name] = true
		}
		former = n.Name
	}
	return nodes, nil
}
