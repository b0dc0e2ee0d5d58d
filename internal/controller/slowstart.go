package controller

import (
	"sync"
)

// SlowStart calls f count times, at first once, then 2 at a time, 4, 8 and so on, and stops after the first batch in which a call fails. It
// returns how many calls succeeded and the first error. When something is wrong with all of them (a quota, a webhook), the
// API server is asked once and not thousands of times.
func SlowStart(count int, f func() error) (int, error) {
	done := 0
	for batch := min(count, 1); batch > 0; batch = min(2*batch, count-done) {
		errs := make(chan error, batch)
		var calls sync.WaitGroup
		for range batch {
			calls.Go(func() {
				if err := f(); err != nil {
					errs <- err
				}
			})
		}
		calls.Wait()
		done += batch - len(errs)
		if len(errs) > 0 {
			return done, <-errs
		}
	}
	return done, nil
}
