package fleet

import (
	"context"
	"time"

	"github.com/bayplan/bayplan/internal/fleet/wheel"
)

// timer is something that the fleet does at its time.
type timer = wheel.Timer[func(now time.Time)]

// maxSleep is how long the goroutine of time sleeps when there is nothing to do.
const maxSleep = time.Hour

// keepTime does what is due, and sleeps in between.
func (f *Fleet) keepTime(ctx context.Context) {
	alarm := f.clock.NewTimer(maxSleep)
	defer alarm.Stop()
	for {
		alarm.Reset(f.catchUp())
		select {
		case <-ctx.Done():
			return
		case <-alarm.C():
		case <-f.woken:
		}
	}
}

// catchUp does all that is due and returns how long there is nothing more to do.
func (f *Fleet) catchUp() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for _, act := range f.wheel.Advance(now) {
		act(now)
	}
	f.asleep = now.Add(maxSleep)
	if next, ok := f.wheel.Next(); ok && next.Before(f.asleep) {
		f.asleep = next
	}
	return f.asleep.Sub(now)
}

// at sets a timer; the caller holds the lock.
func (f *Fleet) at(t *timer, when time.Time) {
	f.wheel.Set(t, when)
	if when.Before(f.asleep) {
		// One wake-up is enough for all timers that are set until then.
		f.asleep = when
		select {
		case f.woken <- struct{}{}:
		default:
		}
	}
}
