package ledger

import "github.com/bayplan/bayplan/internal/scheduler/shape"

// journalSize is how many changes can be read back. Who falls further behind builds anew, which costs about as much as
// reading that many.
const journalSize = 1 << 14

// Kind tells what a change was. Several may be combined for a node.
type Kind uint16

// The kinds of changes.
const (
	PodAdded Kind = 1 << iota
	PodRemoved
	// PodTerminating: a pod that was counted as running is being deleted now; it still holds its resources.
	PodTerminating
	NodeAdded
	NodeRemoved
	NodeAllocatable
	NodeLabels
	NodeTaints
	NodeImages
	NodeFeatures
)

// NodeSet are the changes after which the set of nodes, or of topology domains, may be another one.
const NodeSet = NodeAdded | NodeRemoved | NodeLabels

// Change is one entry of the journal.
type Change struct {
	Slot int32
	Kind Kind
	// Shape is that of the pod, nil for a change of the node.
	Shape *shape.Shape
	// Terminating tells of a pod added or removed whether it is being deleted.
	Terminating bool
}

// journal is a ring of the latest changes, numbered from 0.
type journal struct {
	ring []Change
	next uint64
}

func newJournal() journal { return journal{ring: make([]Change, journalSize)} }

func (j *journal) append(c Change) {
	j.ring[j.next&(journalSize-1)] = c
	j.next++
}

// Position returns the number of the next change.
func (l *Ledger) Position() uint64 { return l.journal.next }

// Since calls do for every change from a position on and reports whether the journal still had them all. If it had not,
// do is not called.
func (l *Ledger) Since(position uint64, do func(*Change)) bool {
	j := &l.journal
	if j.next-position > journalSize {
		return false
	}
	for ; position < j.next; position++ {
		do(&j.ring[position&(journalSize-1)])
	}
	return true
}
