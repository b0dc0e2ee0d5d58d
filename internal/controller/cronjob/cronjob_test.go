package cronjob

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", New)
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ schedule, zone, from, want string }{
		{"*/15 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"},
		{"0 9-17/4 * * MON-FRI", "UTC", "2026-01-02T17:00:00Z", "2026-01-05T09:00:00Z"},
		{"30 4 1,15 * 5", "UTC", "2026-01-02T05:00:00Z", "2026-01-09T04:30:00Z"}, // one of the two day fields is enough
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},    // a leap year
		{"0 0 30 feb ?", "UTC", "2026-01-01T00:00:00Z", ""},                      // never
		{"0 12 * * *", "America/New_York", "2026-07-01T00:00:00Z", "2026-07-01T16:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-30T00:30:00Z"}, // 02:30 does not exist on the 29th
		{"@hourly", "UTC", "2026-01-01T00:59:59Z", "2026-01-01T01:00:00Z"},
		{"@every 90s", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"},
		{"59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
	} {
		location, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Skipf("the machine has no time zone data: %v", err)
		}
		s, err := parse(c.schedule, location)
		if err != nil {
			t.Errorf("%q: %v", c.schedule, err)
			continue
		}
		from, _ := time.Parse(time.RFC3339, c.from)
		got := ""
		if next := s.next(from); !next.IsZero() {
			got = next.UTC().Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%q in %s after %s: %s, want %s", c.schedule, c.zone, c.from, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@never", "@every x"} {
		if _, err := parse(text, time.UTC); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// The next time comes later, is one that the fields allow, and no minute between is.
func TestNextIsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &fields{
			minute: rapid.Uint64Range(1, 1<<60-1).Draw(t, "minute"), hour: rapid.Uint64Range(1, 1<<24-1).Draw(t, "hour"),
			day: rapid.Uint64Range(1, 1<<31-1).Draw(t, "day") << 1, month: 1<<13 - 2, weekday: 1<<7 - 1,
			anyWeekday: true, location: time.UTC,
		}
		from := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "from"), 0).UTC()
		next := s.next(from)
		allowed := func(at time.Time) bool {
			return s.minute&(1<<at.Minute()) != 0 && s.hour&(1<<at.Hour()) != 0 && s.dayMatches(at)
		}
		if !next.After(from) || !allowed(next) {
			t.Fatalf("after %s comes %s", from, next)
		}
		for at := from.Truncate(time.Minute).Add(time.Minute); at.Before(next); at = at.Add(time.Minute) {
			if allowed(at) {
				t.Fatalf("after %s comes %s, but %s is due before", from, next, at)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"* * * * *", "*/5 1-3,7 * JAN-mar SUN", "@daily", "@every 1h", "1-2-3 * * * *", "/ / / / /"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text, time.UTC)
		if err != nil {
			return
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := s.next(from); !next.IsZero() && !next.After(from) {
			t.Fatalf("%q: %s is not after %s", text, next, from)
		}
	})
}
