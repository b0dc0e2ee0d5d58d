package wheel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// model is a wheel that is easily seen to be right.
type model struct {
	now      time.Duration
	sequence int
	set      map[int]entry
}

type entry struct {
	deadline time.Duration
	sequence int
}

func roundUp(d time.Duration) time.Duration { return (d + Tick - 1) / Tick * Tick }

func (m *model) advance(now time.Duration) []int {
	m.now = now
	var due []int
	for id, e := range m.set {
		if e.deadline <= now/Tick*Tick {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b int) int {
		x, y := m.set[a], m.set[b]
		if x.deadline != y.deadline {
			return int(x.deadline - y.deadline)
		}
		return x.sequence - y.sequence
	})
	for _, id := range due {
		delete(m.set, id)
	}
	return due
}

// TestLikeModel: any sequence of sets, stops and advances hands out the same timers in the same order as a plain map, and Next is never later than a deadline.
func TestLikeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := New[int](start), &model{set: map[int]entry{}}
		timers := make([]Timer[int], 12)
		for i := range timers {
			timers[i].Value = i
		}
		// Deadlines of all magnitudes, so that all levels are used.
		span := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(1, 50).Draw(t, "bits")).Draw(t, "ns"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				id := rapid.IntRange(0, len(timers)-1).Draw(t, "timer")
				at := m.now + span.Draw(t, "in") - time.Second
				w.Set(&timers[id], start.Add(at))
				m.sequence++
				m.set[id] = entry{roundUp(max(at, -time.Hour)), m.sequence}
			},
			"stop": func(t *rapid.T) {
				id := rapid.IntRange(0, len(timers)-1).Draw(t, "timer")
				w.Stop(&timers[id])
				delete(m.set, id)
			},
			"advance": func(t *rapid.T) {
				now := m.now + span.Draw(t, "by")
				got, want := w.Advance(start.Add(now)), m.advance(now)
				if !slices.Equal(got, want) {
					t.Fatalf("at %s due are %v, want %v", now, got, want)
				}
			},
			"": func(t *rapid.T) { check(t, w, m, timers) },
		})
	})
}

func check(t *rapid.T, w *Wheel[int], m *model, timers []Timer[int]) {
	if w.Len() != len(m.set) {
		t.Fatalf("%d timers, want %d", w.Len(), len(m.set))
	}
	next, ok := w.Next()
	if ok != (len(m.set) > 0) {
		t.Fatalf("Next says %v with %d timers", ok, len(m.set))
	}
	for id, e := range m.set {
		if !timers[id].Pending() {
			t.Fatalf("timer %d is not pending", id)
		}
		if e.deadline > m.now && next.Sub(start) > e.deadline {
			t.Fatalf("Next is %s, after the deadline %s of %d", next.Sub(start), e.deadline, id)
		}
	}
}

// TestNextArrives: an owner that sleeps until Next gets every timer at its deadline, after few calls.
func TestNextArrives(t *testing.T) {
	w := New[string](start)
	var timer Timer[string]
	for _, d := range []time.Duration{time.Millisecond, 63 * time.Millisecond, 64 * time.Millisecond, 3 * time.Hour, 400 * 24 * time.Hour} {
		timer.Value = d.String()
		now, _ := w.Next()
		if now.IsZero() {
			now = w.at(w.now)
		}
		deadline := now.Add(d)
		w.Set(&timer, deadline)
		for calls := 1; ; calls++ {
			at, ok := w.Next()
			if !ok || calls > levels+1 {
				t.Fatalf("%s: not due after %d calls", d, calls)
			}
			if due := w.Advance(at); len(due) > 0 {
				if !at.Equal(deadline) || due[0] != d.String() {
					t.Errorf("%s: %v due at %s, want %s", d, due, at, deadline)
				}
				break
			}
		}
	}
}

func BenchmarkSetAndAdvance(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			random := rand.New(rand.NewPCG(1, 2))
			w, timers, now := New[int](start), make([]Timer[int], n), start
			for i := range timers {
				timers[i].Value = i
				w.Set(&timers[i], now.Add(time.Duration(random.Int64N(int64(10*time.Second)))))
			}
			for b.Loop() {
				// One period of a heartbeat in steps of 10 ms: each timer is due once.
				for range 1000 {
					now = now.Add(10 * time.Millisecond)
					for _, i := range w.Advance(now) {
						w.Set(&timers[i], now.Add(10*time.Second))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/timer")
		})
	}
}
