package protocol

import (
	"os"
	"os/exec"
	"testing"
)

func TestStartTicks(t *testing.T) {
	self := StartTicks(os.Getpid())
	if self == 0 || self != StartTicks(os.Getpid()) {
		t.Errorf("of this process: %d", self)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skipf("no child to look at: %v", err)
	}
	if got := StartTicks(child.Process.Pid); got < self {
		t.Errorf("of a child: %d, of its parent: %d", got, self)
	}
	if fields := StatFields(child.Process.Pid); len(fields) < 50 {
		t.Errorf("%d fields", len(fields))
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if got := StartTicks(child.Process.Pid); got != 0 {
		t.Errorf("of a process that is gone: %d", got)
	}
}
