package cycle_test

import (
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// refScore is one plugin's scores of the feasible nodes.
type refScore struct {
	weight     int64
	raw, final []int64
}

func (w *world) scores(p *v1.Pod, nodes []*v1.Node) map[string]refScore {
	out := map[string]refScore{}
	add := func(name string, weight int64, raw func(*v1.Node) int64, normalize func([]int64) []int64) {
		s := refScore{weight: weight}
		for _, n := range nodes {
			s.raw = append(s.raw, raw(n))
		}
		s.final = normalize(s.raw)
		out[name] = s
	}
	asIs := func(raw []int64) []int64 { return raw }
	add("TaintToleration", 3, func(n *v1.Node) int64 { return softTaints(p, n) }, byMax(true))
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		terms, _ := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		add("NodeAffinity", 2, terms.Score, byMax(false))
	}
	add("NodeResourcesFit", 1, func(n *v1.Node) int64 { return w.least(p, n) }, asIs)
	if r := requests(p, false); amount(r, v1.ResourceCPU)+amount(r, v1.ResourceMemory) > 0 {
		add("NodeResourcesBalancedAllocation", 1, func(n *v1.Node) int64 {
			return 50 + (50+w.balance(p, n, true)-w.balance(p, n, false))/2
		}, asIs)
	}
	add("ImageLocality", 1, func(n *v1.Node) int64 { return w.locality(p, n) }, asIs)
	w.spreadScore(p, nodes, out)
	w.interPodScore(p, nodes, out)
	return out
}

func byMax(reverse bool) func([]int64) []int64 {
	return func(raw []int64) []int64 {
		top := int64(0)
		for _, r := range raw {
			top = max(top, r)
		}
		out := make([]int64, len(raw))
		for i, r := range raw {
			if top > 0 {
				out[i] = 100 * r / top
			}
			if reverse {
				out[i] = 100 - out[i]
			}
		}
		return out
	}
}

func softTaints(p *v1.Pod, n *v1.Node) (count int64) {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule {
			continue
		}
		tolerated := false
		for _, tol := range p.Spec.Tolerations {
			if tol.Effect == "" || tol.Effect == v1.TaintEffectPreferNoSchedule {
				tolerated = tolerated || tol.ToleratesTaint(klog.Background(), t, false)
			}
		}
		if !tolerated {
			count++
		}
	}
	return count
}

func (w *world) least(p *v1.Pod, n *v1.Node) int64 {
	var sum, weights int64
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		all := amount(n.Status.Allocatable, name)
		if all == 0 {
			continue
		}
		used := w.used(n.Name, name, true) + amount(requests(p, true), name)
		if used <= all {
			sum += (all - used) * 100 / all
		}
		weights++
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

func (w *world) balance(p *v1.Pod, n *v1.Node, with bool) int64 {
	var parts []float64
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		all := amount(n.Status.Allocatable, name)
		if all == 0 {
			continue
		}
		used := w.used(n.Name, name, false)
		if with {
			used += amount(requests(p, false), name)
		}
		parts = append(parts, math.Min(1, float64(used)/float64(all)))
	}
	std := 0.0
	if len(parts) == 2 {
		std = math.Abs((parts[0] - parts[1]) / 2)
	}
	return int64((1 - std) * 100)
}

func (w *world) locality(p *v1.Pod, n *v1.Node) int64 {
	const mib = 1 << 20
	has := func(n *v1.Node, name string) (int64, bool) {
		for _, image := range n.Status.Images {
			for _, each := range image.Names {
				if each == name {
					return image.SizeBytes, true
				}
			}
		}
		return 0, false
	}
	var sum int64
	for _, c := range p.Spec.Containers {
		name := c.Image
		if !strings.Contains(name, ":") {
			name += ":latest"
		}
		size, ok := has(n, name)
		if !ok {
			continue
		}
		holders := 0
		for _, other := range w.nodes {
			if _, ok := has(other, name); ok {
				holders++
			}
		}
		sum += int64(float64(size) * (float64(holders) / float64(len(w.nodes))))
	}
	most := int64(1000 * mib * len(p.Spec.Containers))
	return 100 * (min(max(sum, 23*mib), most) - 23*mib) / (most - 23*mib)
}

// softConstraints are the pod's own, or the built-in ones over the pods that the same Services select.
func (w *world) softConstraints(p *v1.Pod) (soft []v1.TopologySpreadConstraint, needAll bool) {
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		return ofKind(p, v1.ScheduleAnyway), true
	}
	siblings := map[string]string{}
	for _, s := range w.services {
		if s.Namespace == p.Namespace && selects(labelSelector(s.Spec.Selector), p.Labels) {
			for k, v := range s.Spec.Selector {
				siblings[k] = v
			}
		}
	}
	if len(siblings) == 0 {
		return nil, false
	}
	return []v1.TopologySpreadConstraint{
		{MaxSkew: 3, TopologyKey: v1.LabelHostname, LabelSelector: labelSelector(siblings)},
		{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, LabelSelector: labelSelector(siblings)},
	}, false
}

func (w *world) spreadScore(p *v1.Pod, nodes []*v1.Node, out map[string]refScore) {
	soft, needAll := w.softConstraints(p)
	if len(soft) == 0 {
		return
	}
	s := refScore{weight: 2, raw: make([]int64, len(nodes)), final: make([]int64, len(nodes))}
	scored := func(n *v1.Node) bool { return !needAll || hasKeys(n, soft) }
	sums := make([]float64, len(nodes))
	for _, c := range soft {
		domains, count := map[string]bool{}, 0
		for _, n := range nodes {
			if scored(n) {
				domains[n.Labels[c.TopologyKey]] = true
				count++
			}
		}
		if c.TopologyKey != v1.LabelHostname {
			count = len(domains)
		}
		pods := map[string]int64{}
		for _, n := range w.nodes {
			if scored(n) && eligible(p, n, &c) {
				pods[n.Labels[c.TopologyKey]] += w.matching(p, n, c.LabelSelector)
			}
		}
		for i, n := range nodes {
			value, ok := n.Labels[c.TopologyKey]
			if !ok || !scored(n) {
				continue
			}
			here := pods[value]
			if c.TopologyKey == v1.LabelHostname {
				here = w.matching(p, n, c.LabelSelector)
			}
			sums[i] += float64(here)*math.Log(float64(count+2)) + float64(c.MaxSkew-1)
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		s.raw[i] = int64(math.Round(sums[i]))
		if scored(n) {
			least, most = min(least, s.raw[i]), max(most, s.raw[i])
		}
	}
	for i, n := range nodes {
		switch {
		case !scored(n):
		case most == 0:
			s.final[i] = 100
		default:
			s.final[i] = 100 * (most + least - s.raw[i]) / most
		}
	}
	out["PodTopologySpread"] = s
}

func (w *world) interPodScore(p *v1.Pod, nodes []*v1.Node, out map[string]refScore) {
	worth := map[[2]string]int64{}
	credit := func(holder *v1.Node, key string, weight int64) {
		if value, ok := holder.Labels[key]; ok {
			worth[[2]string{key, value}] += weight
		}
	}
	_, _, preferred, preferredAnti := podTerms(p)
	for _, holder := range w.nodes {
		for _, other := range w.on(holder.Name) {
			for _, t := range preferred {
				if w.termSelects(p, &t.PodAffinityTerm, other) {
					credit(holder, t.PodAffinityTerm.TopologyKey, int64(t.Weight))
				}
			}
			for _, t := range preferredAnti {
				if w.termSelects(p, &t.PodAffinityTerm, other) {
					credit(holder, t.PodAffinityTerm.TopologyKey, -int64(t.Weight))
				}
			}
			hard, _, theirs, theirsAnti := podTerms(other)
			for _, t := range hard {
				if w.termSelects(other, &t, p) {
					credit(holder, t.TopologyKey, 1)
				}
			}
			for _, t := range theirs {
				if w.termSelects(other, &t.PodAffinityTerm, p) {
					credit(holder, t.PodAffinityTerm.TopologyKey, int64(t.Weight))
				}
			}
			for _, t := range theirsAnti {
				if w.termSelects(other, &t.PodAffinityTerm, p) {
					credit(holder, t.PodAffinityTerm.TopologyKey, -int64(t.Weight))
				}
			}
		}
	}
	if len(worth) == 0 {
		return
	}
	s := refScore{weight: 2}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for _, n := range nodes {
		sum := int64(0)
		for pair, weight := range worth {
			if value, ok := n.Labels[pair[0]]; ok && value == pair[1] {
				sum += weight
			}
		}
		s.raw = append(s.raw, sum)
		least, most = min(least, sum), max(most, sum)
	}
	for _, raw := range s.raw {
		final := int64(0)
		if most > least {
			final = int64(100 * (float64(raw-least) / float64(most-least)))
		}
		s.final = append(s.final, final)
	}
	out["InterPodAffinity"] = s
}
