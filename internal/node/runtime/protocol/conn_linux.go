package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// maxFiles bounds the files that travel beside one frame.
const maxFiles = 4

// Conn is one call in progress, seen from either end. It is not safe for concurrent reads, nor for concurrent writes.
type Conn struct {
	socket *net.UnixConn
	files  []*os.File
}

// NewConn takes over a connected socket.
func NewConn(socket *net.UnixConn) *Conn { return &Conn{socket: socket} }

// Dial connects to a helper's socket. The kernel takes socket names of 107 bytes at most and a data directory may be deep, so the
// directory is opened and the socket named through it.
func Dial(ctx context.Context, path string) (*Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return NewConn(socket.(*net.UnixConn)), nil
}

// Close ends the call. Files that came and that nobody took are closed.
func (c *Conn) Close() error {
	closeAll(c.TakeFiles())
	return c.socket.Close()
}

// Send writes a frame, with files beside it. The files stay the caller's.
func (c *Conn) Send(v any, files ...*os.File) error {
	frame, err := Encode(v)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		_, err = c.socket.Write(frame)
		return err
	}
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	defer runtime.KeepAlive(files)
	// The files go with the header, so that the peer has them before it has decoded the frame.
	n, _, err := c.socket.WriteMsgUnix(frame[:headerSize], syscall.UnixRights(fds...), nil)
	if err != nil {
		return fmt.Errorf("send %d files: %w", len(files), err)
	}
	_, err = c.socket.Write(frame[n:])
	return err
}

// Receive reads a frame; files that came with it wait in TakeFiles.
func (c *Conn) Receive(v any) error { return Read(reader{c}, v) }

// TakeFiles hands over the files that came so far. They are the caller's to close.
func (c *Conn) TakeFiles() []*os.File {
	files := c.files
	c.files = nil
	return files
}

// reader reads from the socket and collects the files that come along.
type reader struct{ c *Conn }

func (r reader) Read(p []byte) (int, error) {
	oob := make([]byte, syscall.CmsgSpace(maxFiles*4))
	n, oobn, flags, _, err := r.c.socket.ReadMsgUnix(p, oob)
	if oobn > 0 {
		if ferr := r.c.collect(oob[:oobn]); ferr != nil && err == nil {
			err = ferr
		}
	}
	if flags&syscall.MSG_CTRUNC != 0 && err == nil {
		err = fmt.Errorf("receive files: more than %d came with one frame", maxFiles)
	}
	if err != nil {
		return 0, err // not n: io.ReadFull drops an error that comes with enough bytes
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *Conn) collect(oob []byte) error {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("receive files: %w", err)
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return fmt.Errorf("receive files: %w", err)
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			c.files = append(c.files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if len(c.files) > maxFiles {
		closeAll(c.TakeFiles())
		return fmt.Errorf("receive files: more than %d came with one frame", maxFiles)
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// Call makes one call on the helper at path and waits for its only answer. An *Error is the helper's own; any other error means that it could not be asked.
func Call(ctx context.Context, path string, request *Request, files ...*os.File) (*Reply, []*os.File, error) {
	conn, err := Open(ctx, path, request, files...)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	defer conn.CloseOn(ctx)()
	reply, err := conn.Next()
	if err != nil {
		return nil, nil, orContext(ctx, err)
	}
	return reply, conn.TakeFiles(), nil
}

// Open makes a call that has several answers; Next reads them one by one.
func Open(ctx context.Context, path string, request *Request, files ...*os.File) (*Conn, error) {
	conn, err := Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := conn.Send(request, files...); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Next reads the next answer of a call.
func (c *Conn) Next() (*Reply, error) {
	reply := &Reply{}
	if err := c.Receive(reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	return reply, nil
}

// CloseOn breaks the connection when the context ends, which makes reads and writes return. The function it gives ends the watch over the context.
func (c *Conn) CloseOn(ctx context.Context) func() {
	var once sync.Once
	stop := context.AfterFunc(ctx, func() { once.Do(func() { _ = c.socket.Close() }) })
	return func() { stop() }
}

func orContext(ctx context.Context, err error) error {
	var failure *Error
	if ctx.Err() != nil && !errors.As(err, &failure) {
		return ctx.Err()
	}
	return err
}

// HasCode tells whether the error is a helper's answer of that kind.
func HasCode(err error, code Code) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Code == code
}
