package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// errSecondSocket stops a dialer that wants another socket after it has left the namespace: it would be made outside. The net package
// does so when a TCP socket that was given the port it dials has connected to itself.
var errSecondSocket = errors.New("nobody listens there: the socket reached only itself")

// dialAttempts bounds how often Dial begins anew after that; each attempt makes it once more improbable.
const dialAttempts = 4

// Dial connects to an IP address and port from inside the namespace. Only the socket is made inside, so that a slow or
// silent other side holds no thread.
func (n *Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	address, err := checkAddress(network, address, true)
	if err != nil {
		return nil, n.wrap("dialing", err)
	}
	var conn net.Conn
	for range dialAttempts {
		conn, err = n.dialOnce(ctx, network, address)
		if !errors.Is(err, errSecondSocket) {
			break
		}
	}
	return conn, n.wrap("dialing", err)
}

// dialOnce enters the namespace, lets the dialer make its socket, and leaves before the dialer connects it: the Control function is called
// in between, on the same goroutine. (For an IP address the dialer starts no others.)
func (n *Namespace) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		back, err := lockThread()
		if err != nil {
			done <- result{err: err}
			return
		}
		defer back()
		if err := n.enter(); err != nil {
			done <- result{err: err}
			return
		}
		inside := true
		dialer := net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error {
			if !inside {
				return errSecondSocket
			}
			inside = false
			return back()
		}}
		conn, err := dialer.DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// Listen announces on an address of the namespace, which is an IP address and port, or ":port" for all addresses. Connections that it
// accepts belong to the namespace too.
func (n *Namespace) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	address, err := checkAddress(network, address, false)
	if err != nil {
		return nil, n.wrap("listening", err)
	}
	var listener net.Listener
	err = n.Do(func() error {
		var config net.ListenConfig
		var err error
		listener, err = config.Listen(ctx, network, address)
		return err
	})
	return listener, n.wrap("listening", err)
}

// ListenPacket announces on a UDP address of the namespace.
func (n *Namespace) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	address, err := checkAddress(network, address, false)
	if err != nil {
		return nil, n.wrap("listening", err)
	}
	var conn net.PacketConn
	err = n.Do(func() error {
		var config net.ListenConfig
		var err error
		conn, err = config.ListenPacket(ctx, network, address)
		return err
	})
	return conn, n.wrap("listening", err)
}

// wrap says which namespace an error of the net package is about.
func (n *Namespace) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s in network namespace %s: %w", doing, n.path, err)
}
