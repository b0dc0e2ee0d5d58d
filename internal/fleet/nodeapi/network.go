package nodeapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// Dialer makes connections.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Network leads connections to the addresses of simulated nodes to the one server that answers for all, in memory: nothing is listened to on the machine, and no packet
// leaves the process. Servers may follow one another.
type Network struct {
	nodes, pods netip.Prefix

	mu sync.Mutex
	// server is the one that answers now, nil when there is none.
	server *listener
}

// NewNetwork makes the network of the nodes and pods with addresses of these prefixes.
func NewNetwork(nodes, pods netip.Prefix) *Network { return &Network{nodes: nodes, pods: pods} }

// Listen makes the caller's server the one that answers for all nodes. reaches reports whether there is a node with an address, and it can be reached.
func (n *Network) Listen(reaches func(address string) bool) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = &listener{reaches: reaches, accepted: make(chan net.Conn), closed: make(chan struct{}), address: n.nodes.Addr()}
	return n.server
}

// Around returns a dialer that leads to simulated nodes, and leaves all other addresses to next. Simulated pods have no network: a connection to one is refused.
func (n *Network) Around(next Dialer) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		switch {
		case err != nil:
			return next(ctx, network, address)
		case n.pods.Contains(to.Addr()):
			return nil, fmt.Errorf("dial %s: the pod is simulated and has no network", address)
		case !n.nodes.Contains(to.Addr()):
			return next(ctx, network, address)
		}
		return n.dial(ctx, to)
	}
}

// pipeSize is how much a connection holds that its reader has not read yet.
const pipeSize = 64 << 10

func (n *Network) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	server := n.server
	n.mu.Unlock()
	if server == nil || !server.reaches(to.Addr().String()) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: syscall.EHOSTUNREACH}
	}
	client, far, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case server.accepted <- &conn{Conn: far, local: net.TCPAddrFromAddrPort(to)}:
		return client, nil
	case <-server.closed:
		err = &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, client.Close(), far.Close())
}

// connect makes the two ends of a connection.
func connect(ctx context.Context) (client, server net.Conn, err error) {
	pipe := bufconn.Listen(pipeSize)
	accepted := make(chan error, 1)
	go func() {
		var err error
		server, err = pipe.Accept()
		accepted <- err
	}()
	if client, err = pipe.DialContext(ctx); err != nil {
		err = errors.Join(err, pipe.Close())
		<-accepted
		return nil, nil, err
	}
	err = <-accepted
	return client, server, err
}

// listener is the server's side of the network.
type listener struct {
	reaches  func(address string) bool
	address  netip.Addr
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.address, 0)) }

// conn is the server's side of a connection. Its local address is the one that was dialed: by it the server knows which node is meant.
type conn struct {
	net.Conn
	local net.Addr
}

func (c *conn) LocalAddr() net.Addr { return c.local }
