package noderestriction

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
)

// nodeObject: a node writes its own object, and neither steers pods to itself by labels or taints nor gives itself owners.
func (w write) nodeObject() error {
	if w.GetName() != w.node {
		return w.refuse("node %q is not allowed to modify node %q", w.node, w.GetName())
	}
	node, ok := w.GetObject().(*corev1.Node)
	switch {
	case w.GetOperation() != admission.Create && w.GetOperation() != admission.Update:
		return nil
	case !ok:
		return w.refuse("unexpected type %T", w.GetObject())
	case w.GetOperation() == admission.Update:
		return w.nodeUpdate(node)
	case node.Spec.ConfigSource != nil:
		return w.refuse("node %q is not allowed to create pods with a non-nil configSource", w.node)
	}
	if refused := forbiddenLabels(node.Labels, nil); len(refused) > 0 {
		return w.refuse("node %q is not allowed to set the following labels: %s", w.node, strings.Join(refused, ", "))
	}
	return nil
}

func (w write) nodeUpdate(node *corev1.Node) error {
	old, ok := w.GetOldObject().(*corev1.Node)
	same := equality.Semantic.DeepEqual
	switch {
	case !ok:
		return w.refuse("unexpected type %T", w.GetOldObject())
	case node.Spec.ConfigSource != nil && !same(node.Spec.ConfigSource, old.Spec.ConfigSource):
		return w.refuse("node %q is not allowed to update configSource to a new non-nil configSource", w.node)
	case !same(node.Spec.Taints, old.Spec.Taints):
		return w.refuse("node %q is not allowed to modify taints", w.node)
	case !same(node.OwnerReferences, old.OwnerReferences):
		return w.refuse("node %q is not allowed to modify ownerReferences", w.node)
	}
	if refused := forbiddenLabels(node.Labels, old.Labels); len(refused) > 0 {
		return w.refuse("is not allowed to modify labels: %s", strings.Join(refused, ", "))
	}
	return nil
}

// nodeLabels are the labels below kubernetes.io and k8s.io that a node may set on itself, and nodeDomains those under which it may set any.
var (
	nodeLabels = []string{
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}
	nodeDomains = []string{corev1.LabelNamespaceSuffixKubelet, corev1.LabelNamespaceSuffixNode}
)

// forbiddenLabels are those that differ and that a node may not change, sorted.
func forbiddenLabels(labels, old map[string]string) []string {
	var out []string
	check := func(key string) {
		if !slices.Contains(out, key) && forbiddenLabel(key) {
			out = append(out, key)
		}
	}
	for key, value := range labels {
		if former, ok := old[key]; !ok || former != value {
			check(key)
		}
	}
	for key := range old {
		if !has(labels, key) {
			check(key)
		}
	}
	slices.Sort(out)
	return out
}

func forbiddenLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		return false
	case within(domain, corev1.LabelNamespaceNodeRestriction):
		return true
	case !within(domain, "kubernetes.io") && !within(domain, "k8s.io"):
		return false
	}
	return !slices.Contains(nodeLabels, key) && !slices.ContainsFunc(nodeDomains, func(d string) bool { return within(domain, d) })
}

func within(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
