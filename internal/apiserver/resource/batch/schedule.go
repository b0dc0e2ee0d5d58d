package batch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronField is one of the five fields of a schedule.
type cronField struct {
	name      string
	low, high int
	words     []string
}

var cronFields = []cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// checkSchedule accepts what the CronJob controller understands: five fields, "@daily" and its like, and "@every DURATION".
func checkSchedule(schedule string) error {
	text := strings.TrimSpace(schedule)
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		_, text, _ = strings.Cut(text, " ")
	}
	if strings.HasPrefix(text, "@") {
		return checkDescriptor(text)
	}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) {
		return fmt.Errorf("expected exactly %d fields, found %d: %v", len(cronFields), len(fields), fields)
	}
	for i, text := range fields {
		for part := range strings.SplitSeq(text, ",") {
			if err := cronFields[i].check(part); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDescriptor(text string) error {
	if slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, text) {
		return nil
	}
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		_, err := time.ParseDuration(every)
		return err
	}
	return fmt.Errorf("unrecognized descriptor: %s", text)
}

// check accepts "*", "?", a number, a range and each of them with a step.
func (f *cronField) check(part string) error {
	bounds, step, stepped := strings.Cut(part, "/")
	if stepped {
		if n, err := strconv.Atoi(step); err != nil || n <= 0 {
			return fmt.Errorf("%s: step must be a positive number: %s", f.name, part)
		}
	}
	if bounds == "*" || bounds == "?" {
		return nil
	}
	from, to, ranged := strings.Cut(bounds, "-")
	low, err := f.number(from)
	if err != nil {
		return err
	}
	if !ranged {
		return nil
	}
	high, err := f.number(to)
	if err != nil {
		return err
	}
	if low > high {
		return fmt.Errorf("%s: beginning of range (%d) beyond end of range (%d): %s", f.name, low, high, part)
	}
	return nil
}

func (f *cronField) number(text string) (int, error) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return i + f.low, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: failed to parse int from %q", f.name, text)
	}
	if n < f.low {
		return 0, fmt.Errorf("%s: %d below minimum (%d)", f.name, n, f.low)
	}
	if n > f.high {
		return 0, fmt.Errorf("%s: %d above maximum (%d)", f.name, n, f.high)
	}
	return n, nil
}
