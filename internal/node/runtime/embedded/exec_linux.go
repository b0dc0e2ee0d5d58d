package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxSyncOutput bounds what ExecSync keeps of each stream, in bytes; the rest is read and dropped. It is what the CRI allows.
const maxSyncOutput = 16 << 20

// ExecSync runs a command inside a container and gives its output and exit code.
func (r *Runtime) ExecSync(ctx context.Context, request *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	if timeout := request.GetTimeout(); timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(timeout)*time.Second)
		defer cancel()
	}
	var stdout, stderr bounded
	code, err := r.exec(ctx, request.GetContainerId(), &execution{command: request.GetCmd(), stdout: &stdout, stderr: &stderr})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, status.Errorf(codes.DeadlineExceeded, "exec in container %s: %v was not over after %d s", request.GetContainerId(), request.GetCmd(), request.GetTimeout())
	}
	if err != nil {
		return nil, err
	}
	return &cri.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: int32(code)}, nil
}

// bounded is a buffer that drops what does not fit.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), maxSyncOutput-b.Len())])
	return len(p), nil
}

// execution is a command to run inside a container, and what its streams are connected to.
type execution struct {
	command        []string
	stdin          io.Reader // nil: the command reads the end of file
	stdout, stderr io.Writer
	tty            bool
	resize         <-chan size
}

// size is the size of a terminal, in characters.
type size struct{ width, height uint16 }

// exec runs a command and waits for its end. The end of the context ends the command.
func (r *Runtime) exec(ctx context.Context, id string, e *execution) (int, error) {
	c, err := r.container(id)
	if err != nil {
		return 0, err
	}
	s, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return 0, err
	}
	if !r.isRunning(c) {
		return 0, status.Errorf(codes.FailedPrecondition, "container %q is not running", c.config.Metadata.Name)
	}
	process, err := r.execProcess(s, c, e)
	if err != nil {
		return 0, err
	}
	code, err := r.runExec(ctx, s, c, process, e)
	if err != nil && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return code, err
}

// execProcess describes the command: it runs as the container does.
func (r *Runtime) execProcess(s *sandbox, c *container, e *execution) ([]byte, error) {
	if len(e.command) == 0 {
		return nil, status.Error(codes.InvalidArgument, "exec: no command is given")
	}
	process, err := r.process(s, c)
	if err != nil {
		return nil, err
	}
	process.Args, process.Terminal = e.command, e.tty
	if e.tty && !slices.ContainsFunc(process.Env, func(v string) bool { return len(v) > 5 && v[:5] == "TERM=" }) {
		process.Env = append(process.Env, "TERM=xterm")
	}
	if e.tty {
		process.ConsoleSize = &specs.Box{Width: 80, Height: 24}
	}
	return json.Marshal(process)
}

func (r *Runtime) runExec(ctx context.Context, s *sandbox, c *container, process []byte, e *execution) (int, error) {
	var streams pipes
	defer streams.close()
	if !e.tty {
		if err := streams.open(e); err != nil {
			return 0, err
		}
	}
	conn, err := protocol.Open(ctx, s.socket, &protocol.Request{Exec: &protocol.ExecRequest{
		ID: c.record.ID, Process: process, Stdin: e.stdin != nil && !e.tty,
	}}, streams.theirs...)
	streams.closeTheirs()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer conn.CloseOn(ctx)()
	first, err := conn.Next()
	if err != nil {
		return 0, fmt.Errorf("exec %q: %w", e.command, err)
	}
	if files := conn.TakeFiles(); e.tty {
		if len(files) != 1 || first.Exec == nil {
			return 0, errors.New("exec: the pod's helper gave no terminal")
		}
		streams.terminal(files[0], e)
	}
	last, err := conn.Next()
	if err != nil {
		return 0, fmt.Errorf("exec %q: %w", e.command, err)
	}
	if last.Exec == nil || !last.Exec.Exited {
		return 0, errors.New("exec: the pod's helper did not tell the exit code")
	}
	streams.drain()
	return last.Exec.ExitCode, nil
}

// drainPatience is how long output is waited for once the command has ended: a process that it left behind may hold the streams open for good.
const drainPatience = time.Second

// pipes connect a command's streams with ours.
type pipes struct {
	theirs []*os.File // what the helper gets
	ours   []*os.File
	copies sync.WaitGroup
}

// open makes a pipe for each stream, and begins to copy.
func (p *pipes) open(e *execution) error {
	if e.stdin != nil {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs, p.ours = append(p.theirs, reader), append(p.ours, writer)
		go func() {
			_, _ = io.Copy(writer, e.stdin)
			_ = writer.Close()
		}()
	}
	for _, target := range []io.Writer{e.stdout, e.stderr} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs, p.ours = append(p.theirs, writer), append(p.ours, reader)
		p.copies.Go(func() { copyOut(target, reader) })
	}
	return nil
}

// copyOut copies a stream to its end. When nobody takes it any more it is read all the same, so that the command is not stopped by that.
func copyOut(target io.Writer, source *os.File) {
	if target != nil {
		if _, err := io.Copy(target, source); err == nil {
			return
		}
	}
	_, _ = io.Copy(io.Discard, source)
}

// terminal copies between a terminal's master side and the streams.
func (p *pipes) terminal(master *os.File, e *execution) {
	p.ours = append(p.ours, master)
	if e.stdin != nil {
		go func() { _, _ = io.Copy(master, e.stdin) }()
	}
	p.copies.Go(func() { copyOut(e.stdout, master) })
	if e.resize != nil {
		go func() {
			for to := range e.resize {
				_ = resizeTerminal(master, to)
			}
		}()
	}
}

func (p *pipes) closeTheirs() {
	for _, file := range p.theirs {
		_ = file.Close()
	}
	p.theirs = nil
}

// drain waits for the rest of the output.
func (p *pipes) drain() {
	for _, file := range p.ours {
		_ = file.SetReadDeadline(time.Now().Add(drainPatience))
	}
	p.copies.Wait()
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, file := range p.ours {
		_ = file.Close()
	}
	p.copies.Wait()
}
