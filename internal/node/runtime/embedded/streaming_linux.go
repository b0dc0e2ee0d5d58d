package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// streamServer serves exec, attach and port-forward sessions. The CRI answers such a call with a URL, to which the agent connects its
// client: here a port of the loopback, with a token in the path that is good for one session and for a minute.
type streamServer struct {
	streaming.Server
	http *http.Server
}

func (r *Runtime) startStreaming() (*streamServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("streaming server: %w", err)
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	server, err := streaming.NewServer(config, streams{r})
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("streaming server: %w", err)
	}
	s := &streamServer{Server: server, http: &http.Server{Handler: server, BaseContext: func(net.Listener) context.Context { return r.ctx }}}
	r.work.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// Exec prepares a session that runs a command in a container.
func (r *Runtime) Exec(_ context.Context, request *cri.ExecRequest) (*cri.ExecResponse, error) {
	if err := r.checkRunning(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetExec(request)
}

// Attach prepares a session that joins a container's streams.
func (r *Runtime) Attach(_ context.Context, request *cri.AttachRequest) (*cri.AttachResponse, error) {
	if err := r.checkRunning(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetAttach(request)
}

// PortForward prepares a session that connects to ports of a pod.
func (r *Runtime) PortForward(_ context.Context, request *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	if !r.isReady(s) {
		return nil, status.Errorf(codes.FailedPrecondition, "pod sandbox of %s/%s is not running", s.config.Metadata.Namespace, s.config.Metadata.Name)
	}
	return r.streams.GetPortForward(request)
}

func (r *Runtime) checkRunning(id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if !r.isRunning(c) {
		return status.Errorf(codes.FailedPrecondition, "container %q is not running", c.config.Metadata.Name)
	}
	return nil
}

// streams is the runtime as the streaming server sees it.
type streams struct{ r *Runtime }

// Exec runs a command with the client's streams.
func (s streams) Exec(ctx context.Context, id string, command []string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	code, err := s.r.exec(ctx, id, &execution{
		command: command, stdin: in, stdout: writerOrNil(out), stderr: writerOrNil(errs), tty: tty, resize: sizes(ctx, resize),
	})
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}

// writerOrNil keeps an interface without a value from looking as if it had one.
func writerOrNil(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// sizes passes the client's terminal sizes on, until the session ends.
func sizes(ctx context.Context, from <-chan remotecommand.TerminalSize) <-chan size {
	if from == nil {
		return nil
	}
	to := make(chan size)
	go func() {
		defer close(to)
		for {
			select {
			case s, more := <-from:
				if !more {
					return
				}
				select {
				case to <- size{s.Width, s.Height}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// Attach joins the client's streams to a container's until the container is over or the client leaves.
func (s streams) Attach(ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	r := s.r
	c, err := r.container(id)
	if err != nil {
		return err
	}
	sandbox, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return err
	}
	if tty != c.config.Tty {
		return fmt.Errorf("attach to container %q: a terminal was asked for: %t, the container has one: %t", c.config.Metadata.Name, tty, c.config.Tty)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if resize != nil {
		go r.passSizes(ctx, sandbox, c, sizes(ctx, resize))
	}
	e := &execution{stdin: in, stdout: leaving(out, cancel), stderr: leaving(errs, cancel)}
	err = r.runAttach(ctx, sandbox, c, e)
	if ctx.Err() != nil {
		return nil // the client has left
	}
	return err
}

// leaving is a writer that tells when its reader is gone: an attached client that closed its connection shows in no other way.
func leaving(w io.WriteCloser, gone func()) io.Writer {
	if w == nil {
		return nil
	}
	return leavingWriter{w, gone}
}

type leavingWriter struct {
	io.Writer
	gone func()
}

func (l leavingWriter) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if err != nil {
		l.gone()
	}
	return n, err
}

func (r *Runtime) passSizes(ctx context.Context, s *sandbox, c *container, sizes <-chan size) {
	for to := range sizes {
		call := &protocol.Request{Resize: &protocol.ResizeRequest{ID: c.record.ID, Width: to.width, Height: to.height}}
		_, _, _ = protocol.Call(ctx, s.socket, call)
	}
}

func (r *Runtime) runAttach(ctx context.Context, s *sandbox, c *container, e *execution) error {
	var streams pipes
	defer streams.close()
	if err := streams.open(e); err != nil {
		return err
	}
	conn, err := protocol.Open(ctx, s.socket, &protocol.Request{Attach: &protocol.AttachRequest{ID: c.record.ID, Stdin: e.stdin != nil}}, streams.theirs...)
	streams.closeTheirs()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer conn.CloseOn(ctx)()
	if _, err := conn.Next(); err != nil {
		return err
	}
	streams.drain()
	return nil
}

// PortForward connects a stream to a port inside the pod's network, and copies until both directions have ended.
func (s streams) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	sandbox, err := s.r.sandbox(id)
	if err != nil {
		return err
	}
	if port < 1 || port > 65535 {
		return fmt.Errorf("port %d is not a port", port)
	}
	_, files, err := protocol.Call(ctx, sandbox.socket, &protocol.Request{Dial: &protocol.DialRequest{Port: uint16(port)}})
	if err != nil {
		return err
	}
	conn, err := connection(files)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return exchange(stream, conn)
}

func connection(files []*os.File) (*net.TCPConn, error) {
	if len(files) != 1 {
		return nil, errors.New("port-forward: the pod's helper gave no connection")
	}
	defer files[0].Close()
	conn, err := net.FileConn(files[0])
	if err != nil {
		return nil, fmt.Errorf("port-forward: %w", err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("port-forward: the pod's helper gave a connection that is not TCP")
	}
	return tcp, nil
}

// exchange copies both ways. The end of what the client says is passed on as such; the end of what the server says ends it all.
func exchange(client io.ReadWriteCloser, server *net.TCPConn) error {
	var upward sync.WaitGroup
	upward.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.CloseWrite()
	})
	_, err := io.Copy(client, server)
	_ = client.Close()
	upward.Wait()
	return err
}
