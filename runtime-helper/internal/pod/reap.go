package pod

import (
	"os"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaper waits for processes that became children of this one only because their parents died: this process is a subreaper, so that
// orphans of containers without a PID namespace of their own end here.
//
// It must not take the exit status of a child that someone waits for: containers and exec sessions (own), and the short-lived processes
// that libcontainer makes while it starts something (busy). While something starts, nothing is reaped.
type reaper struct {
	busy sync.RWMutex

	mu   sync.Mutex
	owns map[int]struct{}
	poke chan struct{}
}

func (r *reaper) init() {
	r.owns = map[int]struct{}{}
	r.poke = make(chan struct{}, 1)
}

// own says that somebody waits for this child.
func (r *reaper) own(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owns[pid] = struct{}{}
}

// disown says that the child was waited for. Others may have been hidden behind it.
func (r *reaper) disown(pid int) {
	r.mu.Lock()
	delete(r.owns, pid)
	r.mu.Unlock()
	r.wake()
}

func (r *reaper) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (p *Pod) reapOnSignal() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	for {
		select {
		case <-children:
		case <-p.reaper.poke:
		}
		p.reaper.reap()
	}
}

// reap takes every zombie up to the first one that has an owner; that owner's disown continues the work.
func (r *reaper) reap() {
	r.busy.Lock()
	defer r.busy.Unlock()
	for {
		pid := peekZombie()
		if pid == 0 {
			return
		}
		r.mu.Lock()
		_, owned := r.owns[pid]
		r.mu.Unlock()
		if owned {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

// peekZombie gives a child that has ended, without taking its status, or 0.
func peekZombie() int {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return 0
	}
	// The kernel's siginfo_t keeps si_pid at offset 16 on 64-bit machines; x/sys leaves that part of the structure unnamed.
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16)))
}
