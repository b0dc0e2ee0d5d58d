package pod

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
)

// Serve answers calls until a Quit ends the process.
func (p *Pod) Serve() error {
	for {
		socket, err := p.listener.AcceptUnix()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go p.serve(protocol.NewConn(socket))
	}
}

func (p *Pod) serve(conn *protocol.Conn) {
	defer conn.Close()
	var request protocol.Request
	if err := conn.Receive(&request); err != nil {
		return
	}
	if err := p.answer(conn, &request); err != nil {
		var failure *protocol.Error
		if !errors.As(err, &failure) {
			failure = &protocol.Error{Message: err.Error()}
		}
		_ = conn.Send(&protocol.Reply{Error: failure})
	}
}

// answer carries a call out. An error that it gives is sent to the caller.
func (p *Pod) answer(conn *protocol.Conn, request *protocol.Request) error {
	switch {
	case request.Watch != nil:
		return p.serveWatch(conn)
	case request.Start != nil:
		state, err := p.start(request.Start)
		if err != nil {
			return err
		}
		return conn.Send(&protocol.Reply{State: state})
	case request.Signal != nil:
		return done(conn, p.signal(request.Signal))
	case request.Update != nil:
		return done(conn, p.update(request.Update))
	case request.Remove != nil:
		return done(conn, p.remove(request.Remove.ID))
	case request.Reopen != nil:
		return done(conn, p.reopen(request.Reopen.ID))
	case request.Exec != nil:
		return p.exec(conn, request.Exec)
	case request.Attach != nil:
		return p.attach(conn, request.Attach)
	case request.Resize != nil:
		return done(conn, p.resize(request.Resize))
	case request.Dial != nil:
		return p.dial(conn, request.Dial.Port)
	case request.Quit != nil:
		return p.quit(conn)
	}
	return &protocol.Error{Code: protocol.Unsupported, Message: "this pod's helper is of a version that does not know the call"}
}

func done(conn *protocol.Conn, err error) error {
	if err != nil {
		return err
	}
	return conn.Send(&protocol.Reply{Done: true})
}

// serveWatch tells states until the client hangs up.
func (p *Pod) serveWatch(conn *protocol.Conn) error {
	w, hello := p.watch()
	defer p.unwatch(w)
	if err := conn.Send(&protocol.Reply{Hello: hello}); err != nil {
		return nil
	}
	gone := hangup(conn)
	for {
		select {
		case <-gone:
			return nil
		case <-w.wake:
		}
		for _, state := range p.takePending(w) {
			if err := conn.Send(&protocol.Reply{State: state}); err != nil {
				return nil
			}
		}
	}
}

// hangup tells when the client has closed its end.
func hangup(conn *protocol.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = conn.Receive(&protocol.Request{})
	}()
	return gone
}

// dial connects to a port inside the pod's network, which is this process's own, and hands the socket over.
func (p *Pod) dial(conn *protocol.Conn, port uint16) error {
	target, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	if err != nil {
		target, err = dialIPv6(port, err)
	}
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside the pod: %w", port, err)
	}
	defer target.Close()
	file, err := target.File()
	if err != nil {
		return err
	}
	defer file.Close()
	return conn.Send(&protocol.Reply{Done: true}, file)
}

// dialIPv6 tries a server that listens on ::1 only, and gives the first error if there is none either.
func dialIPv6(port uint16, first error) (*net.TCPConn, error) {
	target, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv6loopback, Port: int(port)})
	if err != nil {
		return nil, first
	}
	return target, nil
}

// quit ends the pod, which has no running container any more.
func (p *Pod) quit(conn *protocol.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.containers {
		if c.state.Phase == protocol.Running {
			return fmt.Errorf("container %s still runs", id)
		}
	}
	p.endPause()
	_ = os.Remove(p.listener.Addr().String())
	_ = conn.Send(&protocol.Reply{Done: true})
	os.Exit(0)
	return nil
}
