// Package ledger is the cluster as the scheduler counts it, in columns.
//
// Every node has a slot, a small number; everything known of nodes is an array indexed by slot: allocatable and
// requested amounts per resource, the number of pods, the set of taints, the value of a label. A filter or a score is
// then one pass over arrays, and a change of one node touches one element of each.
//
// Pods are counted by shape: a Group holds the slots of all pods of one shape, so that "the pods that this selector
// matches" means a few groups instead of all pods.
//
// The ledger is changed in place by its one owner, and each change leaves an entry in a journal:
//
//	SetNode, DeleteNode ─┐
//	AddPod, RemovePod ───┼──► columns, groups ──► journal ──► whoever caches something for a shape reads on from where
//	Rollback ────────────┘                                   it stopped, or builds anew if it fell too far behind
//
// So the cost of an event depends neither on the number of nodes nor on how many caches there are. What-if (preemption,
// gangs, simulation) marks a point, adds and removes pods, looks, and rolls back: the undone changes are journalled
// like any others.
package ledger

import (
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// None is the slot of a pod whose node the ledger does not know.
const None int32 = -1

// Ledger holds the cluster. It belongs to one goroutine.
type Ledger struct {
	// Shapes compiles the pods that the ledger counts.
	Shapes *shape.Table

	// Storage is what is known of volumes.
	Storage *storage.State
	// Live marks the slots in use. Slots of deleted nodes are used again.
	Live Bitmap
	// Unschedulable marks nodes with spec.unschedulable.
	Unschedulable Bitmap
	// AllowedPods and PodCount are the number of pods that a node takes and has.
	AllowedPods, PodCount []int32
	// TaintSet is the index of each node's set of taints, see Taints.
	TaintSet []int32
	// Scoring is what pods request by the rules for scores: CPU and memory with defaults.
	Scoring [2][]int64

	allocatable, requested [][]int64

	nodes   []nodeRecord
	bySlot  map[string]int32
	free    []int32
	count   int
	zones   zoneOrder
	taints  taintSets
	columns map[string]*LabelColumn
	images  imageTable
	ports   portTable
	// absent holds the pods on nodes that are not known, by name of the node; absentNode has that name.
	absent     map[string][]*Pod
	absentNode map[*Pod]string
	pods       map[types.UID]*Pod
	// priorities counts the pods on known nodes by priority.
	priorities map[int32]int
	groups     groupTable
	spaces     map[string]labels.Set
	spaceRev   uint64
	selectors  selectorTable
	// budgets are the PodDisruptionBudgets by namespace and name.
	budgets map[string]*Budget
	journal journal
	undo    undoLog
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{
		Shapes: shape.NewTable(), Storage: storage.New(),
		bySlot:  map[string]int32{},
		zones:   newZoneOrder(),
		taints:  newTaintSets(),
		columns: map[string]*LabelColumn{},
		images:  newImageTable(),
		ports:   portTable{},
		absent:  map[string][]*Pod{}, absentNode: map[*Pod]string{},
		pods:       map[types.UID]*Pod{},
		priorities: map[int32]int{},
		groups:     newGroupTable(),
		spaces:     map[string]labels.Set{},
		selectors:  newSelectorTable(), budgets: map[string]*Budget{},
		journal: newJournal(),
	}
}

// Slots returns the length of every column. Slots that are not Live are in it too.
func (l *Ledger) Slots() int { return len(l.nodes) }

// Nodes returns the number of nodes.
func (l *Ledger) Nodes() int { return l.count }

// Pods returns the number of pods, those on unknown nodes included.
func (l *Ledger) Pods() int { return len(l.pods) }

// Allocatable returns the column of what nodes offer of a resource.
func (l *Ledger) Allocatable(resource int) []int64 {
	l.growResources(resource)
	return l.allocatable[resource]
}

// Requested returns the column of what pods request of a resource.
func (l *Ledger) Requested(resource int) []int64 {
	l.growResources(resource)
	return l.requested[resource]
}

func (l *Ledger) growResources(resource int) {
	for len(l.allocatable) <= resource {
		l.allocatable = append(l.allocatable, make([]int64, len(l.nodes), cap(l.nodes)))
		l.requested = append(l.requested, make([]int64, len(l.nodes), cap(l.nodes)))
	}
}

// SetNamespace records the labels of a namespace: terms with a namespace selector ask for them.
func (l *Ledger) SetNamespace(name string, set labels.Set) {
	if old, known := l.spaces[name]; known && labels.Equals(old, set) {
		return
	}
	l.spaces[name] = set
	l.spaceRev++
}

// DeleteNamespace forgets a namespace.
func (l *Ledger) DeleteNamespace(name string) {
	delete(l.spaces, name)
	l.spaceRev++
}

// Namespace returns the labels of a namespace.
func (l *Ledger) Namespace(name string) labels.Set { return l.spaces[name] }

// NamespaceRevision moves whenever the labels of a namespace change.
func (l *Ledger) NamespaceRevision() uint64 { return l.spaceRev }
