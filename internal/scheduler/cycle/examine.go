package cycle

import (
	"cmp"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// Examination is everything that a decision on a pod is made of, node by node. It costs as much as asking every plugin
// about every node; it is for people and for tests.
type Examination struct {
	// Plugins are the score plugins that have something to say, with their weights, in order.
	Plugins []PluginWeight
	// Nodes are all nodes, by name.
	Nodes []NodeResult
}

// PluginWeight is a score plugin and its weight.
type PluginWeight struct {
	Name   string
	Weight int64
}

// NodeResult is what was found about one node.
type NodeResult struct {
	Node string
	Slot int32
	// Rejected is why the node cannot take the pod, nil if it can.
	Rejected *plugin.Status
	// Parts are the scores by plugin, in the order of Examination.Plugins; Total is their weighted sum.
	Parts []Part
	Total int64
}

// Part is one plugin's score of one node.
type Part struct{ Raw, Normalized int64 }

// Examine tells everything about a pod's decision, as of now.
func (e *Engine) Examine(pod *Pod) *Examination {
	x := &Examination{}
	if e.ledger.Nodes() == 0 {
		return x
	}
	v := e.view(pod.Shape)
	pass, count := e.feasible(v, pod)
	if pass == nil {
		pass = v.pass
	}
	pass = append(ledger.Bitmap(nil), pass...)
	at := make([]int, e.ledger.Slots())
	e.ledger.Live.Each(func(slot int32) {
		at[slot] = len(x.Nodes)
		x.Nodes = append(x.Nodes, e.judged(v, pod, slot, pass.Has(slot)))
	})
	for i := range v.scores {
		e.addPart(x, &v.scores[i], pass, count, at)
	}
	slices.SortFunc(x.Nodes, func(a, b NodeResult) int { return cmp.Compare(a.Node, b.Node) })
	return x
}

// judged tells why a node was rejected, if it was.
func (e *Engine) judged(v *view, pod *Pod, slot int32, passed bool) NodeResult {
	result := NodeResult{Node: e.ledger.NodeName(slot), Slot: slot}
	if passed {
		return result
	}
	if status, outside := v.outside(slot); outside {
		result.Rejected = &status
		return result
	}
	r := e.rejection(v, pod, slot)
	status := v.filters[r.filter].Explain(r.code)
	result.Rejected = &status
	return result
}

// addPart adds what one score plugin says.
func (e *Engine) addPart(x *Examination, s *boundScore, pass ledger.Bitmap, count int, at []int) {
	if p, ok := s.Score.(plugin.Preparer); ok && (count == 0 || !p.Prepare(pass, count)) {
		return
	}
	raw := make([]int64, e.ledger.Slots())
	s.Column(pass, 1, raw)
	final := append([]int64(nil), raw...)
	if n, own := s.Score.(plugin.Normalizer); own {
		n.Normalize(pass, final)
	} else {
		top := highest(pass, raw)
		pass.Each(func(slot int32) { final[slot] = normalised(s.rule, raw[slot], top) })
	}
	x.Plugins = append(x.Plugins, PluginWeight{Name: s.name, Weight: s.weight})
	pass.Each(func(slot int32) {
		node := &x.Nodes[at[slot]]
		node.Parts = append(node.Parts, Part{Raw: raw[slot], Normalized: final[slot]})
		node.Total += s.weight * final[slot]
	})
}
