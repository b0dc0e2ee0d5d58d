package cycle_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time of the calling thread, so that figures do not depend on what else the machine does.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
