package queue

import (
	"container/heap"
	"time"
)

// itemHeap is a heap of items that know their place in it.
type itemHeap struct {
	list []*Item
	less func(a, b *Item) bool
}

func (h *itemHeap) Len() int           { return len(h.list) }
func (h *itemHeap) Less(i, j int) bool { return h.less(h.list[i], h.list[j]) }
func (h *itemHeap) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].at, h.list[j].at = i, j
}

// Push implements heap.Interface.
func (h *itemHeap) Push(x any) {
	item := x.(*Item)
	item.at = len(h.list)
	h.list = append(h.list, item)
}

// Pop implements heap.Interface.
func (h *itemHeap) Pop() any {
	last := len(h.list) - 1
	item := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return item
}

// before is the order in which pods are tried.
func before(a, b *Item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if !a.Since.Equal(b.Since) {
		return a.Since.Before(b.Since)
	}
	return a.seq < b.seq
}

// sooner orders pods by the end of their back-off.
func sooner(a, b *Item) bool {
	if !a.Until.Equal(b.Until) {
		return a.Until.Before(b.Until)
	}
	return before(a, b)
}

// Flush makes active whose back-off is over, and lets go of unschedulable pods that have waited for too long.
func (q *Queue) Flush(now time.Time) {
	for q.backoff.Len() > 0 && !q.backoff.list[0].Until.After(now) {
		item := heap.Pop(&q.backoff).(*Item)
		item.Since = now
		q.activate(item)
	}
	if q.waiting == 0 || now.Before(q.leftover) {
		return
	}
	for _, group := range q.sortedGroups() {
		for len(group.Items) > 0 && !now.Before(group.Items[0].Since.Add(q.options.Leftover)) {
			item := group.Items[0]
			q.leave(item)
			q.retry(item, now)
		}
	}
	q.leftover = now.Add(q.options.Leftover)
	for _, group := range q.groups {
		q.leftover = earlier(q.leftover, group.Items[0].Since.Add(q.options.Leftover))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// NextWake returns when Flush should next be called; ok is false if it has nothing to wait for.
func (q *Queue) NextWake() (at time.Time, ok bool) {
	if q.backoff.Len() > 0 {
		at, ok = q.backoff.list[0].Until, true
	}
	if q.waiting > 0 && (!ok || q.leftover.Before(at)) {
		at, ok = q.leftover, true
	}
	return at, ok
}
