package queue

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Group is the unschedulable pods of one profile, shape and priority that the same plugins rejected: what helps one helps all.
type Group struct {
	// Profile is the pods' spec.schedulerName.
	Profile   string
	Shape     *shape.Shape
	Priority  int32
	Rejectors []string
	// Items are in the order in which they became unschedulable.
	Items []*Item
	// Seen is for whoever decides whether an event helps: up to when it has looked.
	Seen uint64

	key groupKey
	seq uint64
}

type groupKey struct {
	profile   string
	shape     *shape.Shape
	priority  int32
	rejectors string
}

// wait puts an item among the unschedulable ones.
func (q *Queue) wait(item *Item) {
	key := groupKey{item.Pod.Spec.SchedulerName, item.Shape, item.Priority, strings.Join(item.Rejectors, ",")}
	group := q.groups[key]
	if group == nil {
		q.groupSeq++
		group = &Group{
			Profile: key.profile, Shape: item.Shape, Priority: item.Priority, Rejectors: item.Rejectors,
			key: key, seq: q.groupSeq,
		}
		q.groups[key] = group
	}
	at, _ := slices.BinarySearchFunc(group.Items, item, inOrder)
	group.Items = slices.Insert(group.Items, at, item)
	item.group, item.Place = group, Unschedulable
	due := item.Since.Add(q.options.Leftover)
	if q.waiting == 0 {
		q.leftover = due
	}
	q.leftover = earlier(q.leftover, due)
	q.waiting++
}

func inOrder(a, b *Item) int {
	if c := a.Since.Compare(b.Since); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

func (q *Queue) ungroup(item *Item) {
	group := item.group
	at, _ := slices.BinarySearchFunc(group.Items, item, inOrder)
	group.Items = slices.Delete(group.Items, at, at+1)
	if len(group.Items) == 0 {
		delete(q.groups, group.key)
	}
	item.group = nil
	q.waiting--
}

func (q *Queue) sortedGroups() []*Group {
	if len(q.groups) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(q.groups), func(a, b *Group) int { return cmp.Compare(a.seq, b.seq) })
}

// Move is called when something has happened: the groups that it could help are tried again. It returns how many pods
// that are.
func (q *Queue) Move(helps func(*Group) bool, now time.Time) int {
	moved := 0
	for _, group := range q.sortedGroups() {
		if !helps(group) {
			continue
		}
		for _, item := range group.Items {
			item.group = nil
			q.waiting--
			q.retry(item, now)
			moved++
		}
		group.Items = nil
		delete(q.groups, group.key)
	}
	return moved
}
