package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long the cluster may take to stop, pods included.
const stopTimeout = 2 * time.Minute

// cluster is a running `bayplan up`.
type cluster struct {
	kubeconfig string
	dir        string
	command    *exec.Cmd
	ended      chan error
}

// startCluster returns when the cluster says that it is ready.
func startCluster(ctx context.Context, o options) (*cluster, error) {
	if o.kubeconfig != "" {
		return &cluster{kubeconfig: o.kubeconfig}, nil
	}
	dir, err := os.MkdirTemp("", "conformance-data")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, kubeconfig: filepath.Join(o.out, "kubeconfig"), ended: make(chan error, 1)}
	args := append([]string{"up", "--data-dir", filepath.Join(dir, "data"), "--port", "0", "--kubeconfig", c.kubeconfig}, strings.Fields(o.up)...)
	c.command = exec.Command(o.bayplan, args...)
	log, err := os.Create(filepath.Join(o.out, "bayplan.log"))
	if err != nil {
		return nil, err
	}
	c.command.Stderr = log
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
			if strings.HasPrefix(lines.Text(), "ready") {
				ready <- true
			}
		}
		_, _ = io.Copy(log, output)
		c.ended <- c.command.Wait()
	}()
	select {
	case <-ready:
		return c, nil
	case err := <-c.ended:
		return nil, fmt.Errorf("bayplan up ended before it was ready: %v; see %s", err, log.Name())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), c.stop())
	}
}

// node is an object without anything behind it: some tests of the API alone name a node in what they store, and look for one.
const node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "conformance"}}`

// addNode makes the node.
func (c *cluster) addNode(ctx context.Context, kubectl string) error {
	command := exec.CommandContext(ctx, kubectl, "--kubeconfig", c.kubeconfig, "create", "-f", "-")
	command.Stdin = strings.NewReader(node)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("making a node: %w: %s", err, output)
	}
	return nil
}

// stop stops the cluster in order and removes its data; a cluster that ran before stays.
func (c *cluster) stop() error {
	if c.command == nil {
		return nil
	}
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-c.ended:
		return errors.Join(err, os.RemoveAll(c.dir))
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("bayplan did not stop within %s", stopTimeout), c.command.Process.Kill())
	}
}
