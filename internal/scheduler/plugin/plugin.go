// Package plugin is what a native scheduler plugin is written against.
//
// A native plugin judges whole columns of nodes. For each shape of pod it hands out a Filter or a Score, which looks at
// the ledger's columns and answers for one node (Node) or for all at once (Column); both give the same answers. The cycle
// keeps what they said for as long as it is true:
//
//   - what a local filter or score says of a node depends on that node alone. After a change of the ledger only the
//     changed nodes are asked again, with Node.
//   - a Follower counts pods elsewhere as well (topology spread, inter-pod affinity). It is told every change, and asked
//     for its column in every cycle.
//
// A plugin that has nothing to say about a shape returns nil, as kube-scheduler's plugins return Skip.
package plugin

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
)

// MaxScore is the highest normalised score of a node.
const MaxScore = 100

// Plugin is anything that a profile can enable.
type Plugin interface {
	Name() string
}

// FilterPlugin says which nodes a pod cannot go to.
type FilterPlugin interface {
	Plugin
	NewFilter(l *ledger.Ledger, s *shape.Shape) Filter
}

// ScorePlugin says which of the remaining nodes are better.
type ScorePlugin interface {
	Plugin
	NewScore(l *ledger.Ledger, s *shape.Shape) Score
}

// Code is a filter's word on one node: Pass, or a number that the same filter explains.
type Code uint64

// Pass lets a node through.
const Pass Code = 0

// Filter judges nodes for one shape of pod.
type Filter interface {
	Node(slot int32) Code
	// Column takes every node that fails out of pass, and calls fail for it.
	Column(pass ledger.Bitmap, fail func(slot int32, code Code))
	// Explain tells what a code means.
	Explain(code Code) Status
}

// BlockFilter is a local filter that can judge part of the nodes: the words from..to of the bitmap. A decision runs such
// filters and scores block by block, so that columns which several of them read stay in the processor's cache.
type BlockFilter interface {
	Filter
	Block(pass ledger.Bitmap, from, to int, fail func(slot int32, code Code))
}

// Restrictor is a filter that allows only the few nodes that the pod names. The others are not even looked at.
type Restrictor interface {
	// Restrict returns the names, whether there are such nodes or not; ok is false if the pod names none.
	Restrict() (names []string, ok bool)
}

// Refuser is a filter that can tell before looking at any node that none takes the pod (kube-scheduler's PreFilter).
type Refuser interface {
	// Refuse returns why, ok is false if nodes have to be looked at.
	Refuse() (status Status, ok bool)
}

// Score rates nodes for one shape of pod, higher is better unless it is normalised the other way round.
type Score interface {
	Node(slot int32) int64
	// Column adds weight times the score of each node in the set. It may write to the others too; theirs mean nothing.
	Column(nodes ledger.Bitmap, weight int64, out []int64)
	Normalization() Normalization
}

// BlockScore is a local score that is not normalised and can rate part of the nodes, see BlockFilter.
type BlockScore interface {
	Score
	Block(nodes ledger.Bitmap, from, to int, weight int64, out []int64)
}

// Normalization is how raw scores become 0 to 100.
type Normalization int

// The ways of normalising.
const (
	// AsIs: raw scores are in the range already.
	AsIs Normalization = iota
	// ByMax: 100 * score / highest; all 0 if the highest is 0.
	ByMax
	// ByMaxReversed: 100 less that; all 100 if the highest is 0.
	ByMaxReversed
	// Own: the score implements Normalizer.
	Own
)

// Normalizer is a score with a rule of its own. Such a score must be a Follower.
type Normalizer interface {
	// Normalize replaces the raw scores of the nodes in the set.
	Normalize(nodes ledger.Bitmap, scores []int64)
}

// Flatness is a local score that can tell without looking at the nodes that it gives all of them 0.
type Flatness interface {
	Flat() bool
}

// Preparer is a score that depends on which nodes are left after filtering. It is told before Column and Node.
type Preparer interface {
	// Prepare returns false if the score has nothing to say (PreScore's Skip).
	Prepare(nodes ledger.Bitmap, count int) bool
}

// Follower is a filter or score whose word on a node may change when something changes elsewhere.
type Follower interface {
	// Build counts from nothing.
	Build()
	// Apply counts one change of the ledger; false asks for Build instead.
	Apply(change *ledger.Change) bool
	// Version is another number after every change that counted.
	Version() uint64
}

// Idler is a Follower that can tell that, as things are, it passes every node or scores every node alike. While all
// followers are idle a decision needs to look at no column.
type Idler interface {
	Idle() bool
}

// Skipper is a filter that has nothing to say about a pod as things are, so that kube-scheduler skips it in the whole
// cycle: it is then not asked about what-if changes either.
type Skipper interface {
	Skips() bool
}

// Planner is a filter that lets something be done about a pod's volumes before it is bound.
type Planner interface {
	// Plan tells what, for a node that the filter passes.
	Plan(slot int32) *storage.Plan
}

// Staler is a local filter or score that can notice that everything it said must be asked again.
type Staler interface {
	Stale() bool
}

// Verdict tells whether something could help against a rejection.
type Verdict int

// The verdicts.
const (
	// Unschedulable: it would fit if other pods were gone.
	Unschedulable Verdict = iota + 1
	// Unresolvable: no removal of pods could help.
	Unresolvable
)

// Status is why a node is rejected.
type Status struct {
	Plugin  string
	Verdict Verdict
	Reasons []string
}

// Reject makes a status of one reason.
func Reject(name string, verdict Verdict, reason string) Status {
	return Status{Plugin: name, Verdict: verdict, Reasons: []string{reason}}
}

// FilterColumn is Column for filters that have no faster way than to ask for each node.
func FilterColumn(f Filter, pass ledger.Bitmap, fail func(int32, Code)) {
	pass.Each(func(slot int32) {
		if code := f.Node(slot); code != Pass {
			pass.Clear(slot)
			fail(slot, code)
		}
	})
}

// ScoreColumn is Column for scores that have no faster way than to ask for each node.
func ScoreColumn(s Score, nodes ledger.Bitmap, weight int64, out []int64) {
	nodes.Each(func(slot int32) { out[slot] += weight * s.Node(slot) })
}
