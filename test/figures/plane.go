package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// maker starts one kind of control plane on a directory that may hold the state of an earlier start.
type maker interface {
	name() string
	// start returns as soon as the processes run; config becomes usable later.
	start(ctx context.Context, dir string) (*plane, error)
}

// plane is a control plane whose processes run.
type plane struct {
	processes []*exec.Cmd
	// config is asked until it returns one: the files that it needs are written at start.
	config func() (*rest.Config, error)
	// began is when the first process was started.
	began time.Time
}

// launch starts one more process, whose output goes to a file in dir.
func (p *plane) launch(dir, program string, args ...string) error {
	out, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if p.began.IsZero() {
		p.began = time.Now()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.processes = append(p.processes, cmd)
	return nil
}

// stop ends the processes in order, the last one first.
func (p *plane) stop() error {
	var errs []error
	for i := len(p.processes) - 1; i >= 0; i-- {
		cmd := p.processes[i]
		errs = append(errs, cmd.Process.Signal(syscall.SIGTERM))
		kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // kube-apiserver ends with an error on SIGTERM
		kill.Stop()
	}
	return errors.Join(errs...)
}

// client waits until the configuration is there. Requests may fail until the server listens.
func (p *plane) client(ctx context.Context) (kubernetes.Interface, error) {
	for {
		config, err := p.config()
		if err == nil {
			config.QPS = -1
			config.ContentType = runtime.ContentTypeProtobuf
			config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
			return kubernetes.NewForConfig(config)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// cpu is the CPU time that the processes used, user and system.
func (p *plane) cpu() (time.Duration, error) {
	var ticks int64
	for _, cmd := range p.processes {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		// The second field is a name in parentheses, which may hold spaces; user and system time are the 14th and 15th.
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100, nil
}

// pss is the memory of the processes in bytes, what they share with others counted by share.
func (p *plane) pss() (int64, error) {
	var sum int64
	for _, cmd := range p.processes {
		n, err := pssOf(cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func pssOf(pid int) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("process %d: no Pss in smaps_rollup", pid)
}

// freePort is a port on loopback that nothing listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
