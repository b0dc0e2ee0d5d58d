package cycle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	"k8s.io/apimachinery/pkg/types"
)

// equals makes a ledger of nodes that only their names and zones tell apart.
func equals(t *testing.T, zones ...string) *ledger.Ledger {
	l := ledger.New()
	for i, zone := range zones {
		l.SetNode(transcript.Node(t, fmt.Sprint("n", i), "labels=topology.kubernetes.io/zone="+zone))
	}
	return l
}

func TestReferenceOrderTakesZonesInTurn(t *testing.T) {
	l := equals(t, "b", "a", "a", "b", "b", "c")
	var names []string
	for _, slot := range l.ReferenceOrder() {
		names = append(names, l.NodeName(slot))
	}
	if want := []string{"n0", "n1", "n5", "n3", "n2", "n4"}; !slices.Equal(names, want) {
		t.Errorf("order is %v, want %v", names, want)
	}
	// A zone that was given up and comes back is the last one.
	for _, name := range []string{"n0", "n3", "n4"} {
		l.DeleteNode(name)
	}
	l.SetNode(transcript.Node(t, "n9", "labels=topology.kubernetes.io/zone=b"))
	names = names[:0]
	for _, slot := range l.ReferenceOrder() {
		names = append(names, l.NodeName(slot))
	}
	if want := []string{"n1", "n5", "n9", "n2"}; !slices.Equal(names, want) {
		t.Errorf("order is %v, want %v", names, want)
	}
}

// TestOracleTakesTheFirstOfTheHeap: of the maxima, the first in the pre-order of a binary heap.
func TestOracleTakesTheFirstOfTheHeap(t *testing.T) {
	for _, test := range []struct {
		full []string
		want string
	}{
		{nil, "n0"}, {[]string{"n0"}, "n1"}, {[]string{"n0", "n1"}, "n3"}, {[]string{"n0", "n1", "n3"}, "n4"},
		{[]string{"n0", "n1", "n3", "n4"}, "n2"}, {[]string{"n0", "n1", "n2", "n3", "n4"}, "n5"},
	} {
		l := equals(t, "z", "z", "z", "z", "z", "z")
		for _, node := range test.full {
			s := l.Shapes.Compile(transcript.Pod(t, "x", "cpu=1"))
			l.AddPod(&ledger.Pod{UID: types.UID("on " + node), Shape: s}, node)
		}
		engine := cycle.New(l, plugins.Default(), cycle.Options{Oracle: true})
		d := engine.Decide(&cycle.Pod{UID: "p", Shape: l.Shapes.Compile(transcript.Pod(t, "p", "cpu=100m"))})
		if got := l.NodeName(d.Slot); got != test.want {
			t.Errorf("with %v in use the pod goes to %s, want %s", test.full, got, test.want)
		}
	}
}

// TestTiesAreFairAndRepeatable: every maximum is drawn about equally often, and equal seeds draw equally.
func TestTiesAreFairAndRepeatable(t *testing.T) {
	l := equals(t, "a", "a", "a", "a", "a", "a", "a", "a", "a", "a")
	s := l.Shapes.Compile(transcript.Pod(t, "p", "cpu=100m"))
	draw := func(seed uint64) (slots []int32) {
		engine := cycle.New(l, plugins.Default(), cycle.Options{Seed: seed})
		for range 2000 {
			slots = append(slots, engine.Decide(&cycle.Pod{UID: "p", Shape: s}).Slot)
		}
		return slots
	}
	first := draw(1)
	if !slices.Equal(first, draw(1)) {
		t.Error("the same seed draws differently")
	}
	if slices.Equal(first, draw(2)) {
		t.Error("another seed draws the same")
	}
	counts := map[int32]int{}
	for _, slot := range first {
		counts[slot]++
	}
	for slot := range int32(10) {
		if n := counts[slot]; n < 140 || n > 260 {
			t.Errorf("node %d is drawn %d times of 2000, want about 200", slot, n)
		}
	}
}
