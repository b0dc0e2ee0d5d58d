// Package e2e runs the built program as a user does, with containers, and looks at what comes of it and at what is left of it.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. Nothing is expected to take it; it is what a loaded machine may need.
const patience = 90 * time.Second

// machine is what one test shares over the starts of its cluster: the program, a data directory, and an image of examples/hello in it.
type machine struct {
	t          testing.TB
	bayplan    string
	data       string
	kubeconfig string
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("runs containers, which needs Linux and root")
	}
	bayplan, err := filepath.Abs("../../bin/bayplan")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bayplan); err != nil {
		t.Skip("needs bin/bayplan: run make build")
	}
	dir := t.TempDir()
	m := &machine{t, bayplan, filepath.Join(dir, "data"), filepath.Join(dir, "kubeconfig")}
	t.Cleanup(m.checkNothingLeft)
	binary, archive := filepath.Join(dir, "hello"), filepath.Join(dir, "hello.tar")
	m.run("go", "build", "-o", binary, "../../examples/hello")
	m.run("go", "run", "../../examples/hello/pack", binary, "hello:1", archive)
	m.run(bayplan, "image", "load", archive, "--data-dir", m.data)
	return m
}

// run runs a command that must succeed and returns what it printed.
func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

func (m *machine) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KUBECONFIG="+m.kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) kubectl(args ...string) string {
	m.t.Helper()
	return m.run(m.bayplan, append([]string{"kubectl"}, args...)...)
}

// wait waits by `kubectl wait`.
func (m *machine) wait(args ...string) {
	m.t.Helper()
	m.kubectl(append([]string{"wait", "--timeout", patience.String()}, args...)...)
}

// cluster is one start of the program.
type cluster struct {
	*machine
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  chan error
}

// up starts the program and returns when it says that it is ready.
func (m *machine) up(args ...string) *cluster {
	m.t.Helper()
	c := &cluster{machine: m, output: &bytes.Buffer{}, ended: make(chan error, 1)}
	c.cmd = exec.Command(m.bayplan, append([]string{"up", "--data-dir", m.data, "--port", "0", "--kubeconfig", m.kubeconfig}, args...)...)
	pipe, err := c.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	errors := &bytes.Buffer{}
	c.cmd.Stderr = errors
	if err := c.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			c.stop()
		}
		if m.t.Failed() {
			m.t.Logf("the program printed:\n%s\n%s", c.output, errors)
		}
	})
	ready := make(chan bool, 1)
	go func() {
		scanner := bufio.NewScanner(io.TeeReader(pipe, c.output))
		for scanner.Scan() {
			if strings.HasPrefix(scanner.Text(), "ready") {
				ready <- true
			}
		}
		close(ready)
		c.ended <- c.cmd.Wait()
	}()
	select {
	case ok := <-ready:
		if !ok {
			m.t.Fatalf("the program ended before it was ready: %v\n%s", <-c.ended, errors)
		}
	case <-time.After(patience):
		m.t.Fatalf("not ready after %s", patience)
	}
	return c
}

// stop stops the cluster in order.
func (c *cluster) stop() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Errorf("stopping: %v", err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("the program ended with %v", err)
		}
	case <-time.After(patience):
		c.t.Errorf("not stopped after %s", patience)
		_ = c.cmd.Process.Kill()
	}
}

// kill ends the program as `kill -9` does.
func (c *cluster) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-c.ended
}

// id is by what the cluster is known on the machine.
func (m *machine) id() string {
	sum := sha256.Sum256([]byte(m.data))
	return hex.EncodeToString(sum[:4])
}

// checkNothingLeft looks for what a stopped cluster must not leave on the machine.
func (m *machine) checkNothingLeft() {
	id := m.id()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if strings.Contains(line, m.data) || strings.Contains(line, "/run/bayplan/"+id) {
			m.t.Errorf("left behind: mount %s", line)
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(m.data)) {
			m.t.Errorf("left behind: process %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/bayplan/" + id, "/sys/fs/cgroup/*/bayplan/" + id, "/run/bayplan/" + id} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			m.t.Errorf("left behind: %v", left)
		}
	}
}
