package job

import (
	"testing"

	"pgregory.net/rapid"
)

// What is written can be read, in the fewest characters that say it, and sets behave as sets.
func TestIndexesAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const completions = 40
		want := map[int]bool{}
		var x indexes
		for _, i := range rapid.SliceOf(rapid.IntRange(0, completions-1)).Draw(t, "added") {
			want[i] = true
			x = x.with(i)
		}
		if x.count() != len(want) {
			t.Fatalf("%v counts %d, want %d", x, x.count(), len(want))
		}
		for i := range completions {
			if x.has(i) != want[i] {
				t.Fatalf("%v has(%d) = %v, want %v", x, i, x.has(i), want[i])
			}
		}
		if again := parseIndexes(x.String(), completions); again.String() != x.String() {
			t.Fatalf("%q is read as %q", x, again)
		}
		other := indexes{}.with(rapid.SliceOf(rapid.IntRange(0, completions-1)).Draw(t, "other")...)
		common := 0
		for i := range completions {
			if x.has(i) && other.has(i) {
				common++
			}
		}
		if x.common(other) != common {
			t.Fatalf("%v and %v have %d in common, got %d", x, other, common, x.common(other))
		}
	})
}

func FuzzParseIndexes(f *testing.F) {
	for _, seed := range []string{"", "1", "0,2-4,7", "5-1", "a", "-3", "1--2", "99999999999999999999"} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, completions int) {
		x := parseIndexes(text, completions)
		if x.count() > 0 && (x[0].first < 0 || x[len(x)-1].last >= completions) {
			t.Fatalf("%q with %d completions gives %v", text, completions, x)
		}
	})
}
