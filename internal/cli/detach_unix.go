//go:build unix

package cli

import (
	"os"
	"syscall"
)

// ownSession keeps the terminal's signals from a detached process.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
