package lifecycle

import "time"

// The back-off of Kubernetes: a container that exits is restarted at once, then after 10 s, 20 s, 40 s ... 300 s; one that ran for
// 10 minutes (twice the longest back-off) without a restart starts over.
const (
	BackoffFirst = 10 * time.Second
	BackoffMax   = 300 * time.Second
	BackoffReset = 2 * BackoffMax
)

// Backoff is the state of one doubling back-off. The zero value is one that never began.
type Backoff struct {
	// Delay is the pause that must pass since the last event.
	Delay time.Duration
	// Updated is when Delay was last set.
	Updated time.Time
}

// Holds tells for how long the back-off still holds things up at now, for an event (an exit, a failed pull) that happened at since.
// Zero means go on.
func (b *Backoff) Holds(since, now time.Time) time.Duration {
	if b.Delay == 0 || b.expired(since) {
		return 0
	}
	return max(0, b.Delay-now.Sub(since))
}

// Next lengthens the back-off, or begins it anew when the event at since came long after the last one.
func (b *Backoff) Next(since, now time.Time) {
	if b.Delay == 0 || b.expired(since) {
		b.Delay = BackoffFirst
	} else {
		b.Delay = min(2*b.Delay, BackoffMax)
	}
	b.Updated = now
}

func (b *Backoff) expired(since time.Time) bool { return since.Sub(b.Updated) > BackoffReset }
