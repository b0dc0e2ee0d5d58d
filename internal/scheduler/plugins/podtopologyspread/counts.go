package podtopologyspread

import (
	"math"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/tainttoleration"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
)

// counts are the numbers of matching pods for some constraints of one shape. Pods that are being deleted do not count.
type counts struct {
	plugin *Plugin
	ledger *ledger.Ledger
	shape  *shape.Shape
	// hard tells that the constraints are: only then the emptiest domain matters.
	hard bool
	// needAll tells that only nodes with the keys of all constraints count.
	needAll bool
	list    []constraint
	// matches remembers which constraints select pods of a shape, one bit each, if any do.
	matches map[*shape.Shape]uint64
	version uint64
}

// constraint is one of them with its counters.
type constraint struct {
	shape.SpreadConstraint
	column *ledger.LabelColumn
	// self is 1 if the constraint selects the pod itself.
	self int32
	// eligible are the nodes that count; nil where only the number of pods on each node matters.
	eligible ledger.Bitmap
	// pods is, by value of the key, how many matching pods are on eligible nodes; nodes how many eligible nodes there are.
	pods, nodes []int32
	// least is the lowest number of pods in a domain, lowest how many of the domains have it.
	least, lowest, domains int32
	// perNode is, by slot, how many matching pods a node has, eligible or not; only for host names that are not hard.
	perNode []int32
	host    bool
}

func newCounts(p *Plugin, l *ledger.Ledger, s *shape.Shape, constraints []shape.SpreadConstraint, hard, needAll bool) *counts {
	c := &counts{plugin: p, ledger: l, shape: s, hard: hard, needAll: needAll}
	for _, each := range constraints {
		own := constraint{SpreadConstraint: each, column: l.Label(each.TopologyKey), host: each.TopologyKey == v1.LabelHostname}
		if each.Selector.Selects(s.Class.Labels) {
			own.self = 1
		}
		c.list = append(c.list, own)
	}
	return c
}

// Build counts from nothing.
func (c *counts) Build() {
	c.matches = map[*shape.Shape]uint64{}
	for i := range c.list {
		con := &c.list[i]
		if con.host && !c.hard {
			con.perNode = c.plugin.pool.Get(con.perNode, c.ledger.Slots())
			continue
		}
		con.pods = c.plugin.pool.Get(con.pods, con.column.Len())
		con.nodes = c.plugin.pool.Get(con.nodes, con.column.Len())
		c.setEligible(i)
	}
	for _, group := range c.ledger.GroupsIn(c.shape.Class.Namespace) {
		if mask := c.match(group.Shape); mask != 0 {
			for _, slot := range group.Slots {
				if slot >= 0 {
					c.add(mask, slot, 1)
				}
			}
		}
	}
}

// Version implements plugin.Follower.
func (c *counts) Version() uint64 { return c.version }

// Release gives the counters back.
func (c *counts) Release() {
	for i := range c.list {
		con := &c.list[i]
		c.plugin.pool.Put(con.pods, con.nodes, con.perNode)
		con.pods, con.nodes, con.perNode = nil, nil, nil
	}
}

// setEligible finds the nodes that count for a constraint. Constraints with the same rule share the set.
func (c *counts) setEligible(i int) {
	con := &c.list[i]
	con.eligible = nil
	for j := range c.list[:i] {
		if c.needAll && c.list[j].HonorAffinity == con.HonorAffinity && c.list[j].HonorTaints == con.HonorTaints {
			con.eligible = c.list[j].eligible
		}
	}
	if con.eligible == nil {
		con.eligible = c.eligible(con)
	}
	if !c.hard {
		return
	}
	values := con.column.Value
	for i, word := range con.eligible {
		for part := values[i<<6 : min(i<<6+64, len(values))]; word != 0; word &= word - 1 {
			con.nodes[part[trailing(word)]]++
		}
	}
	con.nodes[0] = 0
	con.findLeast()
}

func (c *counts) eligible(con *constraint) ledger.Bitmap {
	out := append(ledger.Bitmap(nil), c.ledger.Live...)
	if c.needAll {
		for i := range c.list {
			keepWithKey(out, c.list[i].column.Value)
		}
	}
	if con.HonorAffinity && c.shape.Node != nil {
		for i, word := range nodeaffinity.Select(c.ledger, c.shape.Node) {
			out[i] &= word
		}
	}
	if con.HonorTaints {
		out.Each(func(slot int32) {
			taints := c.ledger.Taints(c.ledger.TaintSet[slot])
			if tainttoleration.Untolerated(taints, c.shape.Tolerations) != nil {
				out.Clear(slot)
			}
		})
	}
	return out
}

// keepWithKey takes out the nodes that lack the key of a column.
func keepWithKey(nodes ledger.Bitmap, values []int32) {
	for i := range nodes {
		var word uint64
		for j, value := range values[i<<6 : min(i<<6+64, len(values))] {
			// The sign bit of -value is set unless value is 0.
			word |= uint64(uint32(-value)>>31) << j
		}
		nodes[i] &= word
	}
}

// match returns which constraints select pods of a shape.
func (c *counts) match(s *shape.Shape) uint64 {
	if s.Class.Namespace != c.shape.Class.Namespace {
		return 0
	}
	mask, known := c.matches[s]
	if known {
		return mask
	}
	for i := range c.list {
		// An empty selector selects the pod itself but, in kube-scheduler too, counts nobody.
		if sel := c.list[i].Selector; !sel.Empty() && sel.Selects(s.Class.Labels) {
			mask |= 1 << i
		}
	}
	if mask != 0 {
		c.matches[s] = mask
	}
	return mask
}

// add counts a pod on a node.
func (c *counts) add(mask uint64, slot int32, n int32) {
	c.version++
	for i := range c.list {
		if mask&(1<<i) == 0 {
			continue
		}
		con := &c.list[i]
		if con.perNode != nil {
			con.perNode[slot] += n
		}
		if con.eligible != nil && con.eligible.Has(slot) {
			con.count(con.column.Value[slot], n)
		}
	}
}

// count changes the number of pods of a domain and keeps the lowest number up to date.
func (con *constraint) count(value, n int32) {
	old := con.pods[value]
	con.pods[value] += n
	if con.nodes[value] == 0 {
		return
	}
	if old == con.least {
		con.lowest--
	}
	if now := old + n; now < con.least {
		con.least, con.lowest = now, 1
	} else if now == con.least {
		con.lowest++
	}
	if con.lowest == 0 {
		con.findLeast()
	}
}

// findLeast looks at all domains: those that have eligible nodes.
func (con *constraint) findLeast() {
	con.least, con.lowest, con.domains = math.MaxInt32, 0, 0
	for value, nodes := range con.nodes {
		if nodes == 0 {
			continue
		}
		con.domains++
		if pods := con.pods[value]; pods < con.least {
			con.least, con.lowest = pods, 1
		} else if pods == con.least {
			con.lowest++
		}
	}
}

// covers reports whether there are counters for a node: it may be newer than they are.
func (con *constraint) covers(slot int32) bool {
	if con.perNode != nil {
		return int(slot) < len(con.perNode)
	}
	return int(slot)>>6 < len(con.eligible) && int(con.column.Value[slot]) < len(con.pods)
}

// Apply counts one change.
func (c *counts) Apply(change *ledger.Change) bool {
	if change.Shape == nil {
		return c.applyNode(change.Kind)
	}
	if change.Kind != ledger.PodTerminating && change.Terminating {
		return true
	}
	mask := c.match(change.Shape)
	if mask == 0 {
		return true
	}
	for i := range c.list {
		con := &c.list[i]
		if !con.covers(change.Slot) {
			return false
		}
	}
	if change.Kind == ledger.PodAdded {
		c.add(mask, change.Slot, 1)
	} else {
		c.add(mask, change.Slot, -1)
	}
	return true
}

// applyNode reports whether a change of a node leaves the set of eligible nodes as it is.
func (c *counts) applyNode(kind ledger.Kind) bool {
	if kind&ledger.NodeSet != 0 {
		return false
	}
	for i := range c.list {
		if c.list[i].HonorTaints && kind&ledger.NodeTaints != 0 {
			return false
		}
	}
	return true
}

var _ plugin.Follower = (*counts)(nil)
