package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// readyWord begins the line that says that a cluster can be used.
	readyWord = "ready"
	// readyLook is how often the log of a detached process is looked at.
	readyLook = 5 * time.Millisecond
	// logName is the file in the data directory that gets what a detached process says.
	logName = "log"
)

// runDetached starts this program again without --detach, in a session of its own, and returns when it says that it is ready. It says so in its log.
func runDetached(ctx context.Context, o *clusterOptions) error {
	dir, err := filepath.Abs(o.config.DataDir)
	if err != nil {
		return err
	}
	// Until the cluster is ready its log is beside the data directory: a refused start makes none.
	log, err := os.CreateTemp(nearest(dir), ".bayplan-log-")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := detachedCommand(log)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, os.Remove(log.Name()))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said, err := awaitReady(ctx, log.Name(), ended)
	if err != nil {
		return errors.Join(err, endAbandoned(ctx, cmd, ended), os.Remove(log.Name()))
	}
	path := filepath.Join(dir, logName)
	if err := os.Rename(log.Name(), path); err != nil {
		path = log.Name() // some systems do not rename what is open
	}
	fmt.Fprint(o.out, said)
	fmt.Fprintf(o.out, "process %d runs in the background and writes to %s; `bayplan down` stops it\n", cmd.Process.Pid, path)
	return nil
}

// nearest is the closest directory above dir that is there.
func nearest(dir string) string {
	for {
		dir = filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
	}
}

func detachedCommand(log *os.File) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return arg == "--detach" || strings.HasPrefix(arg, "--detach=") })
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownSession()
	return cmd, nil
}

// awaitReady returns what the process said until it was ready.
func awaitReady(ctx context.Context, log string, ended <-chan error) (string, error) {
	ticker := time.NewTicker(readyLook)
	defer ticker.Stop()
	for {
		var over bool
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ended:
			over = true
		case <-ticker.C:
		}
		data, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}
		if isReady(data) {
			return string(data), nil
		}
		if over {
			return "", errors.New(lastError(string(data)))
		}
	}
}

func isReady(log []byte) bool {
	for line := range bytes.Lines(log) {
		if bytes.HasPrefix(line, []byte(readyWord+" ")) && bytes.HasSuffix(line, []byte("\n")) {
			return true
		}
	}
	return false
}

// lastError is the error by which a process ended.
func lastError(log string) string {
	if _, message, ok := strings.Cut(log, "error: "); ok {
		return strings.TrimSpace(message)
	}
	return "the process ended before it was ready: " + strings.TrimSpace(log)
}

// endAbandoned ends a process that the user no longer waits for.
func endAbandoned(ctx context.Context, cmd *exec.Cmd, ended <-chan error) error {
	if ctx.Err() == nil {
		return nil
	}
	if err := interrupt(cmd.Process); err != nil {
		return err
	}
	<-ended
	return nil
}
