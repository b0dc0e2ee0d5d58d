// Package wheel keeps many timers at the cost of one: a hierarchical timing wheel (Varghese and Lauck, 1987). It reads no clock. Its owner sets timers, sleeps
// until Next and calls Advance, which hands out what is due:
//
//	Set ─► slot of the level whose span covers the deadline ─► Advance: cascades down a level as time comes near ─► due, in the order of deadlines
//
// Setting and stopping a timer take constant time, whatever the number of timers; a timer moves at most once a level. Deadlines are rounded up to whole ticks, so
// that no timer is early. A wheel is not safe for concurrent use.
package wheel

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

const (
	// Tick is the resolution of a wheel.
	Tick = time.Millisecond

	slotBits = 6
	slots    = 1 << slotBits
	// levels cover 2^42 ticks, 139 years.
	levels  = 7
	horizon = 1<<(slotBits*levels) - 1
)

// Timer is one timer with what its owner wants to know when it is due. The zero value is a timer that is not set. It must not be copied once it was set.
type Timer[T any] struct {
	Value T

	// deadline is in ticks since the start of the wheel, sequence the order in which timers were set.
	deadline, sequence int64
	level              int
	slot               int
	prev, next         *Timer[T]
	set                bool
}

// Pending reports whether the timer is set and was not yet due.
func (t *Timer[T]) Pending() bool { return t.set }

// Wheel is a set of timers. Make it with New.
type Wheel[T any] struct {
	start time.Time
	// now is up to which tick everything was handed out.
	now      int64
	sequence int64
	count    int
	levels   [levels]level[T]
	// overdue are timers that were set for a time that has passed.
	overdue []*Timer[T]
}

type level[T any] struct {
	// occupied has a bit for each slot that is not empty.
	occupied uint64
	heads    [slots]*Timer[T]
}

// New makes a wheel whose time begins at start.
func New[T any](start time.Time) *Wheel[T] { return &Wheel[T]{start: start} }

// Len is the number of timers that are set.
func (w *Wheel[T]) Len() int { return w.count }

// Set sets the timer, or sets it anew, to be due at a time. A time that has passed is due at the next Advance.
func (w *Wheel[T]) Set(t *Timer[T], at time.Time) {
	w.Stop(t)
	w.sequence++
	t.deadline, t.sequence, t.set = w.ticks(at), w.sequence, true
	w.count++
	w.place(t)
}

// Stop unsets the timer, if it is set.
func (w *Wheel[T]) Stop(t *Timer[T]) {
	if !t.set {
		return
	}
	t.set = false
	w.count--
	w.unlink(t)
}

// Next is a time at which Advance should be called: no timer is due before it. ok is false when no timer is set.
func (w *Wheel[T]) Next() (at time.Time, ok bool) {
	if w.count == 0 {
		return time.Time{}, false
	}
	if len(w.overdue) > 0 {
		return w.at(w.now), true
	}
	_, tick := w.nearest()
	return w.at(tick), true
}

// Advance lets time pass until now and returns the values of all timers that are due by then, those with the earlier deadline first, and among equals those that
// were set first.
func (w *Wheel[T]) Advance(now time.Time) []T {
	due := w.overdue
	w.overdue = nil
	until := int64(now.Sub(w.start) / Tick)
	for w.count > len(due) {
		found, tick := w.nearest()
		if tick > until {
			break
		}
		w.now = tick
		due = w.cascade(found, due)
	}
	w.now = max(w.now, until)
	slices.SortFunc(due, func(a, b *Timer[T]) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), cmp.Compare(a.sequence, b.sequence))
	})
	values := make([]T, len(due))
	for i, t := range due {
		t.set = false
		values[i] = t.Value
	}
	w.count -= len(due)
	return values
}

func (w *Wheel[T]) ticks(at time.Time) int64 {
	return min(int64((at.Sub(w.start)+Tick-1)/Tick), w.now+horizon)
}

func (w *Wheel[T]) at(tick int64) time.Time { return w.start.Add(time.Duration(tick) * Tick) }

// place puts a timer into the level of the highest digit, in base 64, in which its deadline differs from now.
func (w *Wheel[T]) place(t *Timer[T]) {
	if t.deadline <= w.now {
		t.level, t.slot = -1, len(w.overdue)
		w.overdue = append(w.overdue, t)
		return
	}
	// The highest digit of the horizon may differ by a carry: such a timer waits in the last slot and is placed again from there.
	l := min((63-bits.LeadingZeros64(uint64(t.deadline^w.now)))/slotBits, levels-1)
	t.level, t.slot = l, int(t.deadline>>(slotBits*l))&(slots-1)
	lv := &w.levels[l]
	t.prev, t.next = nil, lv.heads[t.slot]
	if t.next != nil {
		t.next.prev = t
	}
	lv.heads[t.slot] = t
	lv.occupied |= 1 << t.slot
}

func (w *Wheel[T]) unlink(t *Timer[T]) {
	if t.level < 0 {
		last := w.overdue[len(w.overdue)-1]
		w.overdue[t.slot], last.slot = last, t.slot
		w.overdue = w.overdue[:len(w.overdue)-1]
		return
	}
	lv := &w.levels[t.level]
	if t.prev != nil {
		t.prev.next = t.next
	} else if lv.heads[t.slot] = t.next; t.next == nil {
		lv.occupied &^= 1 << t.slot
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// nearest is the lowest level that has timers, and the tick at which its first slot begins: what is in lower levels is due before anything in higher ones.
func (w *Wheel[T]) nearest() (l int, tick int64) {
	for l = range w.levels {
		occupied := w.levels[l].occupied
		if occupied == 0 {
			continue
		}
		shift := slotBits * l
		hand := int(w.now>>shift) & (slots - 1)
		ahead := bits.TrailingZeros64(bits.RotateLeft64(occupied, -hand))
		if ahead == 0 {
			ahead = slots // only the highest level can have come round
		}
		return l, (w.now>>shift + int64(ahead)) << shift
	}
	return 0, w.now
}

// cascade empties the slot of a level that begins now: what is due goes to due, the rest to lower levels.
func (w *Wheel[T]) cascade(l int, due []*Timer[T]) []*Timer[T] {
	lv := &w.levels[l]
	slot := int(w.now>>(slotBits*l)) & (slots - 1)
	t := lv.heads[slot]
	lv.heads[slot] = nil
	lv.occupied &^= 1 << slot
	for t != nil {
		next := t.next
		t.prev, t.next = nil, nil
		if t.deadline <= w.now {
			due = append(due, t)
		} else {
			w.place(t)
		}
		t = next
	}
	return due
}
