package cluster

import (
	"slices"
	"sync"
	"time"
)

// Mark is when a part was ready, counted from the start of the cluster.
type Mark struct {
	Part  string
	After time.Duration
}

// timeline collects what was ready when.
type timeline struct {
	begun time.Time
	mu    sync.Mutex
	marks []Mark
	// Report, where set, is told of each mark as it is made.
	report func(Mark)
}

func (t *timeline) mark(part string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := Mark{part, time.Since(t.begun)}
	t.marks = append(t.marks, m)
	if t.report != nil {
		t.report(m)
	}
}

// all returns the marks so far.
func (t *timeline) all() []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.marks)
}
