package behavior

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// Logs is what one run of a container writes. The zero value writes nothing.
type Logs struct {
	lines  []string
	every  time.Duration
	repeat bool
}

func parseLogs(l *v1alpha1.Logs) (*Logs, error) {
	switch {
	case l == nil:
		return nil, nil
	case l.Every.Duration < 0:
		return nil, fmt.Errorf("every: %s must not be negative", l.Every.Duration)
	case l.Every.Duration > 0 && l.Every.Duration < time.Millisecond:
		return nil, fmt.Errorf("every: %s must be at least a millisecond", l.Every.Duration)
	case l.Repeat && l.Every.Duration == 0:
		return nil, fmt.Errorf("repeat: needs every")
	}
	return &Logs{lines: l.Lines, every: l.Every.Duration, repeat: l.Repeat && len(l.Lines) > 0}, nil
}

// Count is how many lines were written so long after the start.
func (l Logs) Count(since time.Duration) int64 {
	if since < 0 {
		return 0
	}
	all := int64(len(l.lines))
	if l.every == 0 {
		return all
	}
	n := int64(since/l.every) + 1
	if l.repeat {
		return n
	}
	return min(n, all)
}

// Line is the line with that number, from 0, and when it is written after the start.
func (l Logs) Line(n int64) (string, time.Duration) {
	text := l.lines[n%int64(len(l.lines))]
	return strings.ReplaceAll(text, "{n}", strconv.FormatInt(n+1, 10)), time.Duration(n) * l.every
}

// Complete reports whether nothing more comes after so many lines.
func (l Logs) Complete(count int64) bool { return !l.repeat && count >= int64(len(l.lines)) }
