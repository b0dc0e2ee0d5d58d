package pod

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
)

// PauseCommand is the argument that makes the binary process 1 of a shared PID namespace.
const PauseCommand = "pause"

// pidNamespace is the name of the PID namespace in PodConfig.Pins. It is special: this process stays outside of it.
const pidNamespace = "pid"

// prepareNamespaces pins the namespaces that are the pod's own and puts them in order. A recovering helper finds them so.
func (p *Pod) prepareNamespaces() error {
	if p.config.Recovering {
		return p.findPause()
	}
	if err := p.pinNamespaces(); err != nil {
		return err
	}
	if _, own := p.config.Pins["uts"]; own && p.config.Hostname != "" {
		if err := unix.Sethostname([]byte(p.config.Hostname)); err != nil {
			return fmt.Errorf("set host name %q: %w", p.config.Hostname, err)
		}
	}
	if _, own := p.config.Pins["net"]; own {
		if err := raiseLoopback(); err != nil {
			return err
		}
	}
	if err := writeSysctls(p.config.Sysctls); err != nil {
		return err
	}
	if p.config.Pinned {
		return p.findPause()
	}
	return p.startPause()
}

// pinNamespaces pins those in which this process was started.
func (p *Pod) pinNamespaces() error {
	if p.config.Pinned {
		return nil
	}
	for name, target := range p.config.Pins {
		if name == pidNamespace {
			continue
		}
		if err := pin("/proc/self/ns/"+name, target); err != nil {
			return err
		}
	}
	return nil
}

// pin keeps a namespace alive, whatever becomes of its processes, by binding it to a file.
func pin(namespace, target string) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pin %s: %w", namespace, err)
	}
	_ = file.Close()
	if err := unix.Mount(namespace, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin %s to %s: %w", namespace, target, err)
	}
	return nil
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("raise lo: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("raise lo: %w", err)
	}
	return nil
}

// writeSysctls sets the pod's sysctls. The agent has checked that each is namespaced and that the namespace is the pod's.
func writeSysctls(sysctls map[string]string) error {
	for name, value := range sysctls {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("set sysctl %s to %q: %w", name, value, err)
		}
	}
	return nil
}

// startPause makes the PID namespace that the pod's containers share, if they do. It needs a process 1 that outlives this process.
func (p *Pod) startPause() error {
	target, shared := p.config.Pins[pidNamespace]
	if !shared {
		return nil
	}
	cmd := exec.Command("/proc/self/exe", PauseCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start process 1 of the shared PID namespace: %w", err)
	}
	p.pause, p.pausePID = cmd.Process, cmd.Process.Pid
	p.reaper.own(p.pausePID)
	if err := writeFile(p.pauseFile(), fmt.Appendf(nil, "%d %d", p.pausePID, protocol.StartTicks(p.pausePID))); err != nil {
		return err
	}
	return pin(fmt.Sprintf("/proc/%d/ns/pid", p.pausePID), target)
}

func (p *Pod) pauseFile() string { return filepath.Join(p.config.Dir, protocol.PauseName) }

// findPause finds the process 1 that a former helper started.
func (p *Pod) findPause() error {
	if _, shared := p.config.Pins[pidNamespace]; !shared {
		return nil
	}
	text, err := os.ReadFile(p.pauseFile())
	if err != nil {
		return err
	}
	var pid int
	var ticks uint64
	if _, err := fmt.Sscan(string(text), &pid, &ticks); err != nil {
		return fmt.Errorf("%s: %w", p.pauseFile(), err)
	}
	if protocol.StartTicks(pid) != ticks {
		return fmt.Errorf("process 1 of the shared PID namespace (process %d of the host) is gone, and its containers with it", pid)
	}
	p.pausePID = pid
	p.pause, err = os.FindProcess(pid)
	return err
}

// endPause ends the shared PID namespace with everything in it.
func (p *Pod) endPause() {
	if p.pause == nil {
		return
	}
	_ = p.pause.Kill()
	_, _ = p.pause.Wait()
}

// Pause is process 1 of a PID namespace: it reaps and ignores everything else, until it is killed.
func Pause() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	for range children {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
