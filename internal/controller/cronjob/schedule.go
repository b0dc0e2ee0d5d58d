package cronjob

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// schedule tells when a CronJob is due.
type schedule interface {
	// next is the first time after t, or the zero time if there is none.
	next(t time.Time) time.Time
}

// every is a schedule with a fixed distance, in whole seconds.
type every time.Duration

func (e every) next(t time.Time) time.Time {
	return t.Add(time.Duration(e)).Truncate(time.Second)
}

// fields is a schedule of five fields, each a set of values.
type fields struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool // the field starts with *: the other one alone decides
	location                          *time.Location
}

// descriptors are names for common schedules.
var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// field is what one of the five fields may hold.
type field struct {
	name     string
	min, max int
	words    []string // names of the values from min on
}

var fieldKinds = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parse reads a schedule in the standard form of cron: five fields of *, ?, values, ranges, lists and steps; or a descriptor such as
// @daily or @every 1h30m. Times are those of the location.
func parse(text string, location *time.Location) (schedule, error) {
	text = strings.TrimSpace(text)
	if distance, found := strings.CutPrefix(text, "@every "); found {
		d, err := time.ParseDuration(strings.TrimSpace(distance))
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", text, err)
		}
		return every(max(d, time.Second).Truncate(time.Second)), nil
	}
	if strings.HasPrefix(text, "@") {
		known, found := descriptors[text]
		if !found {
			return nil, fmt.Errorf("schedule %q: no such descriptor", text)
		}
		text = known
	}
	parts := strings.Fields(text)
	if len(parts) != len(fieldKinds) {
		return nil, fmt.Errorf("schedule %q has %d fields, expected 5: minute, hour, day of month, month, day of week", text, len(parts))
	}
	var sets [5]uint64
	for i, part := range parts {
		set, err := fieldKinds[i].parse(part)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %s: %w", text, fieldKinds[i].name, err)
		}
		sets[i] = set
	}
	open := func(part string) bool { return strings.HasPrefix(part, "*") || strings.HasPrefix(part, "?") }
	return &fields{sets[0], sets[1], sets[2], sets[3], sets[4], open(parts[2]), open(parts[4]), location}, nil
}

// parse reads one field: a list of items.
func (f field) parse(text string) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		bits, err := f.parseItem(item)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

// parseItem reads *, a value or a range, each with a step if there is one. A value with a step means from there to the end.
func (f field) parseItem(text string) (set uint64, err error) {
	span, stepText, hasStep := strings.Cut(text, "/")
	step := 1
	if hasStep {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return 0, fmt.Errorf("step %q is not a positive number", stepText)
		}
	}
	first, last := f.min, f.max
	if span != "*" && span != "?" {
		low, high, isRange := strings.Cut(span, "-")
		if first, err = f.value(low); err != nil {
			return 0, err
		}
		switch {
		case isRange:
			if last, err = f.value(high); err != nil {
				return 0, err
			}
		case !hasStep:
			last = first
		}
	}
	if first > last {
		return 0, fmt.Errorf("range %q ends before it starts", span)
	}
	for v := first; v <= last; v += step {
		set |= 1 << v
	}
	return set, nil
}

func (f field) value(text string) (int, error) {
	for i, word := range f.words {
		if strings.EqualFold(word, text) {
			return f.min + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.min || v > f.max {
		return 0, fmt.Errorf("%q is not a value from %d to %d", text, f.min, f.max)
	}
	return v, nil
}

// horizon is how far ahead a time is looked for: the rarest valid schedule, a 29th of February on a given weekday rule, comes
// within 8 years.
const horizon = 9

func (s *fields) next(t time.Time) time.Time {
	origin := t.Location()
	t = t.In(s.location).Truncate(time.Minute).Add(time.Minute)
	for limit := t.Year() + horizon; t.Year() <= limit; {
		switch {
		case s.month&(1<<uint(t.Month())) == 0:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, s.location)
		case !s.dayMatches(t):
			t = nextDay(t, s.location)
		case s.hour&(1<<uint(t.Hour())) == 0:
			t = t.Truncate(time.Minute).Add(time.Duration(60-t.Minute()) * time.Minute)
		case s.minute&(1<<uint(t.Minute())) == 0:
			t = t.Add(time.Duration(s.minutesAhead(t.Minute())) * time.Minute)
		default:
			return t.In(origin)
		}
	}
	return time.Time{}
}

// nextDay is the first moment of the next day, also where the clock skips midnight.
func nextDay(t time.Time, location *time.Location) time.Time {
	day := time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, location)
	if day.Day() == t.Day() {
		day = day.Add(time.Hour)
	}
	return day
}

// minutesAhead is the distance to the next minute of the set, or to the next hour.
func (s *fields) minutesAhead(minute int) int {
	if later := s.minute >> uint(minute); later != 0 {
		return bits.TrailingZeros64(later)
	}
	return 60 - minute
}

// dayMatches holds if the day of the month and of the week fit; if both are restricted, one of them is enough.
func (s *fields) dayMatches(t time.Time) bool {
	day := s.day&(1<<uint(t.Day())) != 0
	weekday := s.weekday&(1<<uint(t.Weekday())) != 0
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
