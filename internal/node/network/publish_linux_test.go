package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
)

// askAt is like ask, at a port.
func askAt(t testing.TB, from *netns.Namespace, to netip.Addr, port uint16) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", netip.AddrPortFrom(to, port).String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	buffer := make([]byte, 100)
	n, err := conn.Read(buffer)
	host, _, splitErr := net.SplitHostPort(string(buffer[:n]))
	return strings.TrimPrefix(host, "::ffff:"), errors.Join(err, splitErr)
}

// Everybody reaches a published port, and is seen with the address that is its own where the answer allows it.
func TestPublish(t *testing.T) {
	unchanged(t)
	f := openFabric(t, testConfig(t))
	a, b := addNode(t, f, "a", podsOfA), addNode(t, f, "b", podsOfB)
	server, neighbour, far := runPod(t, a, "server"), runPod(t, a, "neighbour"), runPod(t, b, "far")
	greet(t, server.ns)
	loopback := netip.MustParseAddr("127.0.0.1")
	if err := a.Publish(t.Context(), "server", parseMappings(t, "TCP *:8080 to 80", fmt.Sprintf("TCP %s:8081 to 80", a.Address()))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		from *netns.Namespace
		to   netip.Addr
		port uint16
		want netip.Addr // the zero Addr where nothing answers
	}{
		{"control plane", f.ControlPlane(), a.Address(), 8080, f.Address()},
		{"other node", b.Namespace(), a.Address(), 8080, b.Address()},
		{"pod of other node", far.ns, a.Address(), 8080, far.addr},
		{"pod of the node", neighbour.ns, a.Address(), 8080, neighbour.addr},
		{"the pod itself", server.ns, a.Address(), 8080, a.Address()},
		{"the node", a.Namespace(), a.Address(), 8080, a.Address()},
		{"the node by 127.0.0.1", a.Namespace(), loopback, 8080, a.Address()},
		{"a host address", f.ControlPlane(), a.Address(), 8081, f.Address()},
		{"a host address, by another", a.Namespace(), loopback, 8081, netip.Addr{}},
		{"the other node's port", far.ns, b.Address(), 8080, netip.Addr{}},
		{"a port that isn't", far.ns, a.Address(), 8082, netip.Addr{}},
	} {
		got, err := askAt(t, test.from, test.to, test.port)
		if test.want.IsValid() && (err != nil || got != test.want.String()) || !test.want.IsValid() && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: seen as %s, %v; want %s", test.name, got, err, test.want)
		}
	}
}

// What listens on the node's 127.0.0.1 stays out of reach for pods, though packets to it may come in by their links.
func TestLoopbackStaysPrivate(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	pod := runPod(t, a, "pod")
	if err := a.Publish(t.Context(), "pod", parseMappings(t, "UDP *:53 to 53")); err != nil {
		t.Fatal(err)
	}
	server, err := a.Namespace().ListenPacket(t.Context(), "udp", "127.0.0.1:99")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// A pod with the right to change its network can send 127.0.0.1 out by its link.
	err = pod.ns.Do(func() error {
		return errors.Join(
			withLink("lo", func(lo netlink.Link) error {
				return netlink.AddrDel(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("127.0.0.1/8"))})
			}),
			withLink("eth0", func(eth0 netlink.Link) error {
				route := through(eth0, netip.MustParsePrefix("127.0.0.0/8"), gateway, pod.addr)
				return netlink.RouteAdd(&route)
			}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	say(t, pod.ns, "127.0.0.1:99", "evil")
	say(t, a.Namespace(), "127.0.0.1:99", "own")
	if got := hear(t, server); got != "own" {
		t.Errorf("heard %q", got)
	}
}

// say sends a datagram from a socket of its own.
func say(t testing.TB, from *netns.Namespace, address, text string) {
	t.Helper()
	conn, err := from.Dial(t.Context(), "udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear waits for a datagram.
func hear(t testing.TB, server net.PacketConn) string {
	t.Helper()
	server.SetReadDeadline(time.Now().Add(5 * time.Second))
	buffer := make([]byte, 100)
	n, _, err := server.ReadFrom(buffer)
	if err != nil {
		t.Error(err)
	}
	return string(buffer[:n])
}

// A UDP client that never stops sending reaches the pod that has the port now.
func TestPublishUDP(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	client, err := f.ControlPlane().Dial(t.Context(), "udp", netip.AddrPortFrom(a.Address(), 53).String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("nobody")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		pod := runPod(t, a, id)
		server, err := pod.ns.ListenPacket(t.Context(), "udp", ":5353")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if err := a.Publish(t.Context(), id, parseMappings(t, "UDP *:53 to 5353")); err != nil {
			t.Fatal(err)
		}
		_, err = client.Write([]byte(id))
		if errors.Is(err, syscall.ECONNREFUSED) { // the answer to "nobody", which the first write gets told
			_, err = client.Write([]byte(id))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := hear(t, server); got != id {
			t.Errorf("%s heard %q", id, got)
		}
		if err := a.TearDown(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// elements counts what the kernel has: mappings and hairpins.
func elements(t *testing.T, n *Node) (mapped, hairpins int) {
	t.Helper()
	ports, err := n.in.listPorts()
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range ports {
		mapped += len(all)
	}
	err = n.in.withHostPorts(func(h *hostPorts) error {
		elements, err := h.conn.GetSetElements(h.hairpin)
		hairpins = len(elements)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return mapped, hairpins
}

// Mappings survive a restart, are changed to what is asked for, refused in conflict, and go with the pod.
func TestPublishLifecycle(t *testing.T) {
	config := testConfig(t)
	f := openFabric(t, config)
	a := addNode(t, f, "a", podsOfA)
	one, two := runPod(t, a, "one"), runPod(t, a, "two")
	greet(t, one.ns)
	greet(t, two.ns)
	expect := func(mapped, hairpins int) {
		t.Helper()
		if m, h := elements(t, a); m != mapped || h != hairpins {
			t.Errorf("the kernel has %d mappings and %d hairpins, want %d and %d", m, h, mapped, hairpins)
		}
	}
	publish := func(id, wantErr string, ports ...string) {
		t.Helper()
		err := a.Publish(t.Context(), id, parseMappings(t, ports...))
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v; want %q", id, err, wantErr)
		}
	}
	publish("one", "", "TCP *:80 to 80", "UDP *:80 to 80", "SCTP 10.0.0.2:80 to 80")
	publish("two", "has TCP *:80 to 80", "TCP *:80 to 80")
	publish("nobody", "SetUp comes first", "TCP *:81 to 80")
	expect(3, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFabric(t, config)
	a = addNode(t, f, "a", podsOfA)
	publish("two", "has TCP *:80 to 80", "TCP *:80 to 80")
	publish("two", "", "TCP *:82 to 80")
	publish("one", "", "TCP *:81 to 80")
	expect(2, 2)
	for port, want := range map[uint16]error{80: syscall.ECONNREFUSED, 81: nil, 82: nil} {
		if _, err := askAt(t, f.ControlPlane(), a.Address(), port); !errors.Is(err, want) {
			t.Errorf("port %d: %v, want %v", port, err, want)
		}
	}
	if err := a.TearDown(t.Context(), "one", ""); err != nil {
		t.Fatal(err)
	}
	expect(1, 1)
	if err := a.pool.Free("two"); err != nil { // as a crash may leave it
		t.Fatal(err)
	}
	three := runPod(t, a, "three")
	greet(t, three.ns)
	publish("three", "", "TCP *:82 to 80")
	expect(1, 1)
	publish("three", "")
	expect(0, 0)
}

// The table reads as its documentation says, as far as this package reads it back.
func TestElements(t *testing.T) {
	h := newHostPorts(nil)
	for _, text := range []string{"TCP *:80 to 8080", "UDP 10.0.0.2:53 to 5353", "SCTP 127.0.0.1:65535 to 1"} {
		want, pod := mapping(t, text), netip.MustParseAddr("10.1.1.2")
		set, element := h.element(pod, want)
		if int(set.KeyType.Bytes) != len(element.Key) || int(set.DataType.Bytes) != len(element.Val) {
			t.Errorf("%s: key %x, value %x, want %d and %d bytes", text, element.Key, element.Val, set.KeyType.Bytes, set.DataType.Bytes)
		}
		addr, got, err := parseElement(element)
		if err != nil || got != want || addr != pod {
			t.Errorf("%s: read back as %s of %s, %v", text, got, addr, err)
		}
	}
	if _, _, err := parseElement(nftables.SetElement{Key: []byte{6}}); err == nil {
		t.Error("a short element is accepted")
	}
}
