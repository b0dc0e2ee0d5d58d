package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession keeps the console's signals from a detached process.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// interrupt ends a process; the system has no gentler way for one without a console.
func interrupt(p *os.Process) error { return p.Kill() }
