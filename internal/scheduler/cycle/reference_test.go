package cycle_test

import (
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/resource"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// world is a cluster as objects, for the reference: the plainest possible reading of what each plugin computes, node by
// node and pod by pod. The columns are compared with it.
type world struct {
	nodes      []*v1.Node
	pods       []*v1.Pod
	namespaces map[string]map[string]string
	services   []*v1.Service
}

// verdict is what the reference says of one node.
type verdict struct {
	plugin, reasons string
	unresolvable    bool
	parts           map[string][2]int64
	total           int64
}

func (w *world) on(node string) (out []*v1.Pod) {
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

func requests(p *v1.Pod, scoring bool) v1.ResourceList {
	options := resource.PodResourcesOptions{}
	if scoring {
		options.NonMissingContainerRequests = v1.ResourceList{v1.ResourceCPU: quantity("100m"), v1.ResourceMemory: quantity("200Mi")}
	}
	return resource.PodRequests(p, options)
}

func amount(list v1.ResourceList, name v1.ResourceName) int64 {
	q := list[name]
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func (w *world) used(node string, name v1.ResourceName, scoring bool) (sum int64) {
	for _, p := range w.on(node) {
		sum += amount(requests(p, scoring), name)
	}
	return sum
}

// decide judges all nodes.
func (w *world) decide(p *v1.Pod) map[string]*verdict {
	out := map[string]*verdict{}
	var feasible []*v1.Node
	for _, n := range w.nodes {
		d := &verdict{parts: map[string][2]int64{}}
		w.filter(p, n, d)
		out[n.Name] = d
		if d.plugin == "" {
			feasible = append(feasible, n)
		}
	}
	if len(feasible) == 0 {
		return out
	}
	for name, score := range w.scores(p, feasible) {
		for i, n := range feasible {
			d := out[n.Name]
			d.parts[name] = [2]int64{score.raw[i], score.final[i]}
			d.total += score.weight * score.final[i]
		}
	}
	return out
}

func (d *verdict) reject(plugin, reason string, unresolvable bool) {
	d.plugin, d.reasons, d.unresolvable = plugin, reason, unresolvable
}

func (w *world) filter(p *v1.Pod, n *v1.Node, d *verdict) {
	if names, ok := namedNodes(p); ok && !slices.Contains(names, n.Name) {
		d.reject("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]", true)
		return
	}
	tolerates := func(t *v1.Taint) bool {
		return corev1.TolerationsTolerateTaint(klog.Background(), p.Spec.Tolerations, t, false)
	}
	if n.Spec.Unschedulable && !tolerates(&v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}) {
		d.reject("NodeUnschedulable", "node(s) were unschedulable", true)
		return
	}
	if taint := hardTaint(p, n); taint {
		d.reject("TaintToleration", "node(s) had untolerated taint(s)", true)
		return
	}
	if match, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !match {
		d.reject("NodeAffinity", "node(s) didn't match Pod's node affinity/selector", true)
		return
	}
	if w.portTaken(p, n) {
		d.reject("NodePorts", "node(s) didn't have free ports for the requested pod ports", false)
		return
	}
	if w.fit(p, n, d); d.plugin != "" {
		return
	}
	if w.spread(p, n, d); d.plugin != "" {
		return
	}
	w.interPod(p, n, d)
}

// namedNodes returns the nodes that every alternative of the pod's required affinity names.
func namedNodes(p *v1.Pod) (names []string, ok bool) {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil, false
	}
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return nil, false
	}
	for _, term := range required.NodeSelectorTerms {
		found := false
		for _, f := range term.MatchFields {
			if f.Operator == v1.NodeSelectorOpIn {
				names, found = append(names, f.Values...), true
			}
		}
		if !found {
			return nil, false
		}
	}
	return names, true
}

func hardTaint(p *v1.Pod, n *v1.Node) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule && !corev1.TolerationsTolerateTaint(klog.Background(), p.Spec.Tolerations, t, false) {
			return true
		}
	}
	return false
}

func hostPorts(p *v1.Pod) (out []v1.ContainerPort) {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				if port.HostIP == "" {
					port.HostIP = "0.0.0.0"
				}
				if port.Protocol == "" {
					port.Protocol = v1.ProtocolTCP
				}
				out = append(out, port)
			}
		}
	}
	return out
}

func (w *world) portTaken(p *v1.Pod, n *v1.Node) bool {
	for _, mine := range hostPorts(p) {
		for _, other := range w.on(n.Name) {
			for _, theirs := range hostPorts(other) {
				if mine.HostPort == theirs.HostPort && mine.Protocol == theirs.Protocol &&
					(mine.HostIP == theirs.HostIP || mine.HostIP == "0.0.0.0" || theirs.HostIP == "0.0.0.0") {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) fit(p *v1.Pod, n *v1.Node, d *verdict) {
	var reasons []string
	unresolvable := false
	if int64(len(w.on(n.Name)))+1 > amount(n.Status.Allocatable, v1.ResourcePods) {
		reasons = append(reasons, "Too many pods")
	}
	for name := range requests(p, false) {
		want, all := amount(requests(p, false), name), amount(n.Status.Allocatable, name)
		if want > 0 && want > all-w.used(n.Name, name, false) {
			reasons = append(reasons, "Insufficient "+string(name))
			unresolvable = unresolvable || want > all
		}
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		d.reject("NodeResourcesFit", strings.Join(reasons, ","), unresolvable)
	}
}

func selects(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

func hasKeys(n *v1.Node, constraints []v1.TopologySpreadConstraint) bool {
	for _, c := range constraints {
		if _, ok := n.Labels[c.TopologyKey]; !ok {
			return false
		}
	}
	return true
}

func ofKind(p *v1.Pod, action v1.UnsatisfiableConstraintAction) (out []v1.TopologySpreadConstraint) {
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == action {
			out = append(out, c)
		}
	}
	return out
}

func eligible(p *v1.Pod, n *v1.Node, c *v1.TopologySpreadConstraint) bool {
	if c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor {
		if match, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !match {
			return false
		}
	}
	return c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == v1.NodeInclusionPolicyIgnore || !hardTaint(p, n)
}

func (w *world) matching(p *v1.Pod, n *v1.Node, s *metav1.LabelSelector) (count int64) {
	for _, other := range w.on(n.Name) {
		if other.DeletionTimestamp == nil && other.Namespace == p.Namespace && selects(s, other.Labels) {
			count++
		}
	}
	return count
}

func (w *world) spread(p *v1.Pod, n *v1.Node, d *verdict) {
	hard := ofKind(p, v1.DoNotSchedule)
	for _, c := range hard {
		value, ok := n.Labels[c.TopologyKey]
		if !ok {
			d.reject("PodTopologySpread", "node(s) didn't match pod topology spread constraints (missing required label)", true)
			return
		}
		counts := map[string]int64{}
		for _, other := range w.nodes {
			if hasKeys(other, hard) && eligible(p, other, &c) {
				counts[other.Labels[c.TopologyKey]] += w.matching(p, other, c.LabelSelector)
			}
		}
		least := int64(math.MaxInt32)
		for _, count := range counts {
			least = min(least, count)
		}
		if c.MinDomains != nil && int32(len(counts)) < *c.MinDomains || len(counts) == 0 {
			least = 0
		}
		self := int64(0)
		if selects(c.LabelSelector, p.Labels) {
			self = 1
		}
		if counts[value]+self-least > int64(c.MaxSkew) {
			d.reject("PodTopologySpread", "node(s) didn't match pod topology spread constraints", false)
			return
		}
	}
}

// termSelects tells whether a term of owner's selects the pod.
func (w *world) termSelects(owner *v1.Pod, t *v1.PodAffinityTerm, p *v1.Pod) bool {
	inSpace := slices.Contains(t.Namespaces, p.Namespace)
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		inSpace = owner.Namespace == p.Namespace
	}
	if t.NamespaceSelector != nil {
		inSpace = inSpace || selects(t.NamespaceSelector, w.namespaces[p.Namespace])
	}
	return inSpace && selects(t.LabelSelector, p.Labels)
}

func podTerms(p *v1.Pod) (affinity, anti []v1.PodAffinityTerm, preferred, preferredAnti []v1.WeightedPodAffinityTerm) {
	if p.Spec.Affinity == nil {
		return
	}
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		affinity, preferred = a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		anti, preferredAnti = a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return
}

// near calls do for every pod on a node with the same value of the key.
func (w *world) near(n *v1.Node, key string, do func(*v1.Pod)) {
	value, ok := n.Labels[key]
	for _, other := range w.nodes {
		if v, has := other.Labels[key]; ok && has && v == value {
			for _, p := range w.on(other.Name) {
				do(p)
			}
		}
	}
}

func (w *world) interPod(p *v1.Pod, n *v1.Node, d *verdict) {
	affinity, anti, _, _ := podTerms(p)
	if !w.affinityMet(p, n, affinity) {
		d.reject("InterPodAffinity", "node(s) didn't match pod affinity rules", true)
		return
	}
	for _, t := range anti {
		w.near(n, t.TopologyKey, func(other *v1.Pod) {
			if w.termSelects(p, &t, other) {
				d.reject("InterPodAffinity", "node(s) didn't match pod anti-affinity rules", false)
			}
		})
	}
	if d.plugin != "" {
		return
	}
	for _, holder := range w.nodes {
		for _, other := range w.on(holder.Name) {
			_, theirs, _, _ := podTerms(other)
			for _, t := range theirs {
				here, ok := n.Labels[t.TopologyKey]
				there, has := holder.Labels[t.TopologyKey]
				if ok && has && here == there && w.termSelects(other, &t, p) {
					d.reject("InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules", false)
				}
			}
		}
	}
}

func (w *world) affinityMet(p *v1.Pod, n *v1.Node, terms []v1.PodAffinityTerm) bool {
	all := func(other *v1.Pod) bool {
		return !slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool { return !w.termSelects(p, &t, other) })
	}
	met, any := true, false
	for _, t := range terms {
		if _, ok := n.Labels[t.TopologyKey]; !ok {
			return false
		}
		found := false
		w.near(n, t.TopologyKey, func(other *v1.Pod) { found = found || all(other) })
		met = met && found
		for _, holder := range w.nodes {
			if _, ok := holder.Labels[t.TopologyKey]; ok {
				any = any || slices.ContainsFunc(w.on(holder.Name), all)
			}
		}
	}
	return met || !any && all(p)
}
