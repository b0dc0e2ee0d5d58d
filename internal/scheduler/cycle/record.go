package cycle

import (
	"cmp"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// Record is a decision as data: what explain, events, the dashboard and the simulator's report are made from.
type Record struct {
	// Nodes is how many nodes there are, Feasible how many could take the pod.
	Nodes    int `json:"nodes"`
	Feasible int `json:"feasible"`
	// Verdicts count the nodes by plugin and reasons. With Feasible they add up to Nodes.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Top are the best nodes, best first.
	Top []Rated `json:"top,omitempty"`
	// Misses are the nodes that come nearest to taking the pod, nearest first.
	Misses []Miss `json:"misses,omitempty"`
	// Asked is the node that was asked about, if one was.
	Asked *Asked `json:"asked,omitempty"`
}

// Verdict is a plugin's rejection of some nodes.
type Verdict struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	// Removable tells that the removal of pods could help.
	Removable bool `json:"removable"`
	Nodes     int  `json:"nodes"`
}

// Rated is a node's total and what each plugin gave to it.
type Rated struct {
	Node  string  `json:"node"`
	Total int64   `json:"total"`
	Parts []Share `json:"parts"`
}

// Share is one plugin's part of a total.
type Share struct {
	Plugin     string `json:"plugin"`
	Raw        int64  `json:"raw"`
	Normalized int64  `json:"normalized"`
	Weight     int64  `json:"weight"`
	Weighted   int64  `json:"weighted"`
}

// Miss is a node that does not take the pod, and everything that is in the way.
type Miss struct {
	Node   string          `json:"node"`
	Advice []plugin.Advice `json:"advice"`
}

// Asked is what there is to say about one node.
type Asked struct {
	Node string `json:"node"`
	// Rank is the node's place among the feasible ones, from 1; 0 if it is not feasible or there is no such node.
	Rank  int    `json:"rank,omitempty"`
	Known bool   `json:"known"`
	Rated *Rated `json:"rated,omitempty"`
	Miss  *Miss  `json:"miss,omitempty"`
}

// RecordOptions bound a record.
type RecordOptions struct {
	// Top and Misses are how many nodes to list.
	Top, Misses int
	// Node asks about one node.
	Node string
}

// Record tells how a pod would be decided on now, and why.
func (e *Engine) Record(pod *Pod, options RecordOptions) *Record {
	x := e.Examine(pod)
	r := &Record{Nodes: len(x.Nodes)}
	var feasible, rejected []*NodeResult
	for i := range x.Nodes {
		if x.Nodes[i].Rejected == nil {
			feasible = append(feasible, &x.Nodes[i])
		} else {
			rejected = append(rejected, &x.Nodes[i])
		}
	}
	r.Feasible = len(feasible)
	slices.SortStableFunc(feasible, func(a, b *NodeResult) int { return cmp.Compare(b.Total, a.Total) })
	for _, node := range feasible[:min(options.Top, len(feasible))] {
		r.Top = append(r.Top, x.rated(node))
	}
	r.Verdicts = verdictsOf(rejected)
	misses := e.misses(pod, rejected)
	r.Misses = misses[:min(options.Misses, len(misses))]
	r.Asked = x.asked(options.Node, feasible, misses)
	return r
}

func (x *Examination) rated(node *NodeResult) Rated {
	rated := Rated{Node: node.Node, Total: node.Total}
	for i, part := range node.Parts {
		p := x.Plugins[i]
		rated.Parts = append(rated.Parts, Share{
			Plugin: p.Name, Raw: part.Raw, Normalized: part.Normalized, Weight: p.Weight, Weighted: p.Weight * part.Normalized,
		})
	}
	return rated
}

func verdictsOf(rejected []*NodeResult) (out []Verdict) {
	for _, node := range rejected {
		status := node.Rejected
		at := slices.IndexFunc(out, func(v Verdict) bool {
			return v.Plugin == status.Plugin && slices.Equal(v.Reasons, status.Reasons) &&
				v.Removable == (status.Verdict == plugin.Unschedulable)
		})
		if at < 0 {
			at = len(out)
			out = append(out, Verdict{
				Plugin: status.Plugin, Reasons: status.Reasons, Removable: status.Verdict == plugin.Unschedulable,
			})
		}
		out[at].Nodes++
	}
	slices.SortStableFunc(out, func(a, b Verdict) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return out
}

// misses collects the advice of every filter that rejects a node, not only the first: what would have to change for the
// node to take the pod. Nodes with the fewest filters in the way come first, then those with the least distance.
func (e *Engine) misses(pod *Pod, rejected []*NodeResult) []Miss {
	v := e.view(pod.Shape)
	out := make([]Miss, 0, len(rejected))
	for _, node := range rejected {
		miss := Miss{Node: node.Node}
		for i := range v.filters {
			if code := v.filters[i].Node(node.Slot); code != plugin.Pass {
				miss.Advice = append(miss.Advice, v.filters[i].advice(node.Slot, code))
			}
		}
		if len(miss.Advice) == 0 {
			miss.Advice = []plugin.Advice{besideNominated(node.Rejected)}
		}
		out = append(out, miss)
	}
	slices.SortStableFunc(out, func(a, b Miss) int {
		return cmp.Or(cmp.Compare(len(a.Advice), len(b.Advice)), cmp.Compare(a.distance(), b.distance()))
	})
	return out
}

// besideNominated is the advice on a node that takes the pod but for the room kept for others.
func besideNominated(status *plugin.Status) plugin.Advice {
	return plugin.Advice{
		Plugin: status.Plugin, Reason: status.Reasons[0],
		Detail: "room is kept for pods of no lower priority that are nominated to the node", Distance: 1,
	}
}

func (m *Miss) distance() (sum float64) {
	for i := range m.Advice {
		sum += m.Advice[i].Distance
	}
	return sum
}

func (f *boundFilter) advice(slot int32, code plugin.Code) plugin.Advice {
	status := f.Explain(code)
	advice := plugin.Advice{Detail: status.Reasons[0], Distance: 1}
	if advisor, ok := f.Filter.(plugin.Advisor); ok {
		advice = advisor.Advise(slot)
	}
	advice.Plugin, advice.Reason = f.name, status.Reasons[0]
	return advice
}

// asked finds what there is to say about one node.
func (x *Examination) asked(name string, feasible []*NodeResult, misses []Miss) *Asked {
	if name == "" {
		return nil
	}
	asked := &Asked{Node: name}
	for i, node := range feasible {
		if node.Node == name {
			rated := x.rated(node)
			asked.Known, asked.Rank, asked.Rated = true, i+1, &rated
		}
	}
	for i := range misses {
		if misses[i].Node == name {
			asked.Known, asked.Miss = true, &misses[i]
		}
	}
	return asked
}
