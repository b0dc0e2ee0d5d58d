package protocol

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// serve answers every connection on a new socket with handle, and gives the socket's path.
func serve(t *testing.T, handle func(*Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			conn := NewConn(socket.(*net.UnixConn))
			handle(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return path
}

func TestFilesTravelBothWays(t *testing.T) {
	path := serve(t, func(c *Conn) {
		var request Request
		if err := c.Receive(&request); err != nil {
			t.Error(err)
			return
		}
		files := c.TakeFiles()
		if len(files) != 2 {
			t.Errorf("helper got %d files, want 2", len(files))
			return
		}
		defer closeAll(files)
		_, _ = io.WriteString(files[1], "written by the peer")
		_ = c.Send(&Reply{Done: true}, files[0])
	})
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer readEnd.Close()
	reply, files, err := Call(t.Context(), path, &Request{Exec: &ExecRequest{ID: "c"}}, readEnd, writeEnd)
	_ = writeEnd.Close()
	if err != nil || !reply.Done || len(files) != 1 {
		t.Fatalf("reply %+v, %d files, error %v", reply, len(files), err)
	}
	defer closeAll(files)
	got, err := io.ReadAll(files[0])
	if err != nil || string(got) != "written by the peer" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestCallTellsTheHelpersError(t *testing.T) {
	path := serve(t, func(c *Conn) {
		_ = c.Receive(&Request{})
		_ = c.Send(&Reply{Error: &Error{Code: NotFound, Message: `container "x" is not here`}})
	})
	_, _, err := Call(t.Context(), path, &Request{Signal: &SignalRequest{ID: "x"}})
	if !HasCode(err, NotFound) || err.Error() != `container "x" is not here` {
		t.Fatalf("got %v", err)
	}
	if HasCode(errors.New("x"), NotFound) {
		t.Fatal("an error of another origin has no code")
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	path := serve(t, func(c *Conn) {
		_ = c.Receive(&Request{})
		close(asked)
		_ = c.Receive(&Request{}) // returns when the client hangs up
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		<-asked
		cancel()
	}()
	if _, _, err := Call(ctx, path, &Request{Watch: &WatchRequest{}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestTooManyFilesAreRefused(t *testing.T) {
	result := make(chan error, 1)
	path := serve(t, func(c *Conn) { result <- c.Receive(&Request{}) })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	// The refusal may come while the request is still being written, which then fails.
	if conn, err := Open(t.Context(), path, &Request{}, null, null, null, null, null); err == nil {
		defer conn.Close()
	}
	if err := <-result; err == nil {
		t.Fatal("five files were taken")
	}
}
