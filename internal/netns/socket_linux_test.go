package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// withLoopback makes a namespace whose loopback interface is up.
func withLoopback(t testing.TB) *Namespace {
	t.Helper()
	needRoot(t)
	ns := create(t, filepath.Join(t.TempDir(), "ns"))
	err := ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// The same address and port serve in two namespaces, and each dialer reaches its own.
func TestStreams(t *testing.T) {
	const address = "127.0.0.1:8080"
	for _, name := range []string{"one", "two"} {
		ns := withLoopback(t)
		listener, err := ns.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				io.WriteString(conn, name)
				conn.Close()
			}
		}()
		defer func() {
			conn, err := ns.Dial(t.Context(), "tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if got, err := io.ReadAll(conn); err != nil || string(got) != name {
				t.Errorf("read %q, %v; want %q", got, err, name)
			}
		}()
	}
	threadsOutside(t)
}

func TestDatagrams(t *testing.T) {
	ns := withLoopback(t)
	server, err := ns.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := ns.Dial(t.Context(), "udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "ping"); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 10)
	n, from, err := server.ReadFrom(buffer)
	if err != nil || string(buffer[:n]) != "ping" || from.String() != conn.LocalAddr().String() {
		t.Errorf("got %q from %v, %v; want it from %v", buffer[:n], from, err, conn.LocalAddr())
	}
}

func TestDialErrors(t *testing.T) {
	ns := withLoopback(t)
	if _, err := ns.Dial(t.Context(), "tcp", "127.0.0.1:9"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed port: %v", err)
	}
	if _, err := ns.Dial(t.Context(), "tcp", "10.9.9.9:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("a network without a route: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ns.Dial(ctx, "tcp", "127.0.0.1:9"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	// With one local port to choose from, a socket that dials that port reaches itself.
	err := ns.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40000"), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := ns.Dial(t.Context(), "tcp", "127.0.0.1:40000"); !errors.Is(err, errSecondSocket) {
		t.Errorf("a socket that reaches itself: %v, %v", conn, err)
	}
	threadsOutside(t)
}

// silent gives the namespace a neighbour that never answers: the other end of a veth pair, which has no address.
func silent(ns *Namespace) error {
	return ns.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "quiet"}
		veth.Name = "loud"
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		quiet, err := netlink.LinkByName("quiet")
		if err != nil {
			return err
		}
		address, err := netlink.ParseAddr("10.7.7.1/24")
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(veth, address), netlink.LinkSetUp(veth), netlink.LinkSetUp(quiet))
	})
}

// A dial that waits for the other side holds no thread in the namespace, and ends with its context.
func TestDialWaitsOutside(t *testing.T) {
	ns := withLoopback(t)
	if err := silent(ns); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	dialing := make(chan struct{})
	go func() {
		close(dialing)
		_, err := ns.Dial(ctx, "tcp", "10.7.7.2:80")
		done <- err
	}()
	<-dialing
	for !synSent(t, ns) {
	}
	threadsOutside(t)
	cancel()
	var opErr *net.OpError
	if err := <-done; !errors.As(err, &opErr) || opErr.Err.Error() != "operation was canceled" {
		t.Errorf("Dial: %v", err)
	}
}

// synSent tells whether the namespace has a connection in the making (state 02 of /proc/net/tcp).
func synSent(t *testing.T, ns *Namespace) bool {
	t.Helper()
	var table []byte
	err := ns.Do(func() (err error) {
		table, err = os.ReadFile("/proc/thread-self/net/tcp")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "02" {
			return true
		}
	}
	return false
}

func BenchmarkDial(b *testing.B) {
	ns := withLoopback(b)
	listener, err := ns.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		conn, err := ns.Dial(b.Context(), "tcp", listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, conn)
		conn.Close()
	}
}
