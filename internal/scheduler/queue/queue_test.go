package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// machine is a queue with what the test knows of it.
type machine struct {
	t        *testing.T
	q        *queue.Queue
	table    *shape.Table
	now      time.Time
	inFlight map[string]*queue.Item
	known    map[string]bool
	serial   int
}

func newMachine(t *testing.T) *machine {
	return &machine{
		t: t, q: queue.New(queue.Options{}), table: shape.NewTable(), now: time.Unix(1e9, 0),
		inFlight: map[string]*queue.Item{}, known: map[string]bool{},
	}
}

func (m *machine) item(words ...string) *queue.Item {
	m.serial++
	name := fmt.Sprint("p", m.serial)
	pod := transcript.Pod(m.t, name, words...)
	m.known[name] = true
	return &queue.Item{Pod: pod, Shape: m.table.Compile(pod), Priority: *pod.Spec.Priority}
}

func some[V any](r *rapid.T, from map[string]V) string {
	if len(from) == 0 {
		r.Skip("none")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(from))).Draw(r, "pod")
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": func(r *rapid.T) {
			words := []string{fmt.Sprintf("priority=%d", rapid.IntRange(0, 2).Draw(r, "priority")), fmt.Sprintf("cpu=%d", rapid.IntRange(0, 2).Draw(r, "cpu"))}
			if rapid.IntRange(0, 4).Draw(r, "gate") == 0 {
				words = append(words, "gate")
			}
			m.q.Add(m.item(words...), m.now)
		},
		"pop":  m.pop,
		"done": func(r *rapid.T) { m.forget(some(r, m.inFlight), m.q.Done) },
		"delete": func(r *rapid.T) {
			m.forget(some(r, m.known), m.q.Delete)
		},
		"reject": func(r *rapid.T) {
			name := some(r, m.inFlight)
			m.q.Reject(m.inFlight[name], []string{rapid.SampledFrom([]string{"A", "B"}).Draw(r, "plugin")}, m.now)
			delete(m.inFlight, name)
		},
		"fail": func(r *rapid.T) {
			name := some(r, m.inFlight)
			m.q.Fail(m.inFlight[name], m.now)
			delete(m.inFlight, name)
		},
		"move": func(r *rapid.T) {
			plugin := rapid.SampledFrom([]string{"A", "B"}).Draw(r, "plugin")
			m.q.Move(func(g *queue.Group) bool { return g.Rejectors[0] == plugin }, m.now)
		},
		"activate": func(r *rapid.T) { m.q.Activate(types.UID(some(r, m.known)), m.now) },
		"ungate":   m.ungate,
		"advance":  func(r *rapid.T) { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(r, "s")) * time.Second) },
		"":         m.check,
	}
}

// pop sees to it that nothing that should come first is passed over.
func (m *machine) pop(r *rapid.T) {
	item := m.q.Pop(m.now)
	if item == nil {
		if n := m.q.Counts()[queue.Active]; n > 0 {
			r.Fatalf("nothing is popped though %d are active", n)
		}
		return
	}
	m.q.Each(func(other *queue.Item) {
		if other.Place == queue.Active && other.Priority > item.Priority {
			r.Fatalf("%s of priority %d is popped before %s of %d", item.Pod.Name, item.Priority, other.Pod.Name, other.Priority)
		}
	})
	m.inFlight[item.Pod.Name] = item
}

func (m *machine) ungate(r *rapid.T) {
	item := m.q.Get(types.UID(some(r, m.known)))
	if item.Place == queue.InFlight {
		r.Skip("in flight")
	}
	pod := item.Pod.DeepCopy()
	pod.Spec.SchedulingGates = nil
	item.Pod = pod
	m.q.Changed(item, false, m.now)
}

func (m *machine) forget(name string, how func(types.UID)) {
	how(types.UID(name))
	delete(m.known, name)
	delete(m.inFlight, name)
}

// check: every pod is in exactly one place, and the counts are right.
func (m *machine) check(r *rapid.T) {
	counts := map[queue.Place]int{}
	for name := range m.known {
		item := m.q.Get(types.UID(name))
		if item == nil {
			r.Fatalf("pod %s is lost", name)
		}
		if flying := m.inFlight[name] != nil; flying != (item.Place == queue.InFlight) {
			r.Fatalf("pod %s is %v, in flight should be %v", name, item.Place, flying)
		}
		counts[item.Place]++
	}
	for place, n := range m.q.Counts() {
		if counts[place] != n {
			r.Fatalf("%d pods are %v, the queue says %d", counts[place], place, n)
		}
	}
	if m.q.Len() != len(m.known) {
		r.Fatalf("the queue holds %d pods, want %d", m.q.Len(), len(m.known))
	}
}

func TestNoPodIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMachine(t)
		r.Repeat(m.actions())
		m.drain(r)
	})
}

// drain: given time, every pod that is not gated or in flight comes up again, without any event.
func (m *machine) drain(r *rapid.T) {
	for range 200 {
		at, ok := m.q.NextWake()
		if !ok && m.q.Counts()[queue.Active] == 0 {
			break
		}
		if ok && at.After(m.now) {
			m.now = at
		}
		for item := m.q.Pop(m.now); item != nil; item = m.q.Pop(m.now) {
			m.forget(item.Pod.Name, m.q.Done)
		}
	}
	counts := m.q.Counts()
	if left := counts[queue.Active] + counts[queue.Backoff] + counts[queue.Unschedulable]; left > 0 {
		r.Fatalf("%d pods never come up again: %v", left, counts)
	}
}

func TestOrderIsTotal(t *testing.T) {
	order := func() (names []string) {
		m := newMachine(t)
		for i := range 50 {
			m.q.Add(m.item(fmt.Sprintf("priority=%d", i*7%3)), m.now.Add(time.Duration(i%2)))
		}
		for item := m.q.Pop(m.now); item != nil; item = m.q.Pop(m.now) {
			names = append(names, item.Pod.Name)
		}
		return names
	}
	first := order()
	if second := order(); !slices.Equal(first, second) {
		t.Errorf("two runs give\n%v\n%v", first, second)
	}
	if !slices.Equal(first[:3], []string{"p3", "p9", "p15"}) {
		t.Errorf("the first are %v, want those of priority 2 that came first", first[:3])
	}
}

func BenchmarkQueue(b *testing.B) {
	q, now := queue.New(queue.Options{}), time.Unix(1e9, 0)
	pod := transcript.Pod(b, "p")
	s := shape.NewTable().Compile(pod)
	for i := range 10000 {
		p := pod.DeepCopy()
		p.UID = types.UID(fmt.Sprint(i))
		q.Add(&queue.Item{Pod: p, Shape: s, Priority: int32(i % 5)}, now.Add(time.Duration(i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		item := q.Pop(now)
		q.Reject(item, []string{"NodeResourcesFit"}, now)
		q.Activate(item.Pod.UID, now)
	}
}
