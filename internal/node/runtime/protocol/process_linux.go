package protocol

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// StartTicks gives a process's start time in clock ticks since boot, or 0 when there is no such process. A process's number together with it
// is never used again.
func StartTicks(pid int) uint64 {
	fields := StatFields(pid)
	if len(fields) < 20 {
		return 0
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64) // field 22 of /proc/PID/stat
	if err != nil {
		return 0
	}
	return ticks
}

// StatFields gives the fields of /proc/PID/stat from the third on, the state. The second, the command in parentheses, may hold anything: the
// fields are those after its end.
func StatFields(pid int) [][]byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}
