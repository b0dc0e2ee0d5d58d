package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

func TestExpectations(t *testing.T) {
	clk := testclock.NewFakePassiveClock(time.Unix(0, 0))
	e := NewExpectations(clk)
	check := func(when string, want bool) {
		t.Helper()
		if got, _ := e.Satisfied("k"); got != want {
			t.Errorf("%s: satisfied is %v, want %v", when, got, want)
		}
	}
	check("nothing written", true)
	e.Creating("k")
	check("a create under way", false)
	e.ObservedAdd("k", "other")
	e.Created("k", "a")
	check("created, not seen", false)
	e.ObservedAdd("k", "b")
	check("another object seen", false)
	e.ObservedAdd("k", "a")
	check("seen", true)

	e.Creating("k")
	e.ObservedAdd("k", "c") // the event comes before the call returns
	e.Created("k", "c")
	check("seen early", true)

	e.Creating("k")
	e.CreateFailed("k")
	check("the create failed", true)

	e.Deleting("k", "a")
	check("deleted, still in the cache", false)
	e.ObservedGone("k", "a")
	check("seen gone", true)

	e.Deleting("k", "b")
	clk.SetTime(clk.Now().Add(ExpectationsTimeout))
	check("an event that never came", true)
}

// Whatever the order of calls and events, the end of all of them leaves nothing expected, and before that something is.
func TestExpectationsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewExpectations(testclock.NewFakePassiveClock(time.Unix(0, 0)))
		n := rapid.IntRange(1, 8).Draw(t, "objects")
		steps := make([][]func(), n) // of each object, in its order
		for i := range n {
			uid := types.UID(rune('a' + i))
			steps[i] = append(steps[i], func() { e.Creating("k") })
			returned, seen := func() { e.Created("k", uid) }, func() { e.ObservedAdd("k", uid) }
			if rapid.Bool().Draw(t, "event first") {
				steps[i] = append(steps[i], seen, returned)
			} else {
				steps[i] = append(steps[i], returned, seen)
			}
		}
		left := 3 * n
		for left > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "next")
			if len(steps[i]) == 0 {
				continue
			}
			steps[i][0]()
			steps[i] = steps[i][1:]
			left--
			open := false
			for _, rest := range steps {
				open = open || (len(rest) > 0 && len(rest) < 3)
			}
			if got, _ := e.Satisfied("k"); got == open {
				t.Fatalf("satisfied is %v while something is open: %v", got, open)
			}
		}
	})
}
