//go:build !linux

package cycle_test

import "time"

var began = time.Now()

// cpuTime returns the time that has passed: these systems do not tell a thread's processor time.
func cpuTime() time.Duration { return time.Since(began) }
