package network

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
)

// Everybody reaches everybody, and is seen with the address that is its own.
func TestReach(t *testing.T) {
	unchanged(t)
	f := openFabric(t, testConfig(t))
	a, b := addNode(t, f, "a", podsOfA), addNode(t, f, "b", podsOfB)
	a1, a2, b1 := runPod(t, a, "a1"), runPod(t, a, "a2"), runPod(t, b, "b1")
	places := []struct {
		name string
		ns   *netns.Namespace
		addr netip.Addr
	}{
		{"control plane", f.ControlPlane(), f.Address()},
		{"node a", a.Namespace(), a.Address()}, {"node b", b.Namespace(), b.Address()},
		{"pod a1", a1.ns, a1.addr}, {"pod a2", a2.ns, a2.addr}, {"pod b1", b1.ns, b1.addr},
	}
	for _, place := range places {
		greet(t, place.ns)
	}
	for _, from := range places {
		for _, to := range places {
			seen, err := ask(t, from.ns, to.addr)
			if err != nil || seen != from.addr {
				t.Errorf("%s (%s) to %s (%s): seen as %s, %v", from.name, from.addr, to.name, to.addr, seen, err)
			}
		}
	}
}

// Addresses that nobody has are answered at once, and nothing circles between nodes.
func TestUnreachable(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a, b := addNode(t, f, "a", podsOfA), addNode(t, f, "b", podsOfB)
	pod := runPod(t, a, "a1")
	for _, from := range []*netns.Namespace{f.ControlPlane(), a.Namespace(), b.Namespace(), pod.ns} {
		for what, addr := range map[string]string{
			"a pod of a that isn't": "10.1.1.200", "a pod of b that isn't": "10.1.2.200", "a node that isn't": "10.0.0.99",
			"a pod of no node": "10.1.77.7", "a service that isn't": "10.2.0.1", "the rest of the world": "198.51.100.1",
		} {
			_, err := ask(t, from, netip.MustParseAddr(addr))
			if !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("from %s to %s: %v", from.Path(), what, err)
			}
		}
	}
}

// A pod that sends with another's address is not heard.
func TestSpoofing(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	honest, liar, victim := runPod(t, a, "honest"), runPod(t, a, "liar"), runPod(t, a, "victim")
	server, err := victim.ns.ListenPacket(t.Context(), "udp", netip.AddrPortFrom(victim.addr, 53).String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, from := range []netip.Addr{honest.addr, liar.addr} {
		err := liar.ns.Do(func() error {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: single(from)}); err != nil {
				return err
			}
			conn, err := liar.ns.ListenPacket(t.Context(), "udp", netip.AddrPortFrom(from, 0).String())
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.WriteTo([]byte(from.String()), server.LocalAddr())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	buffer := make([]byte, 100)
	n, from, err := server.ReadFrom(buffer)
	if got := string(buffer[:n]); err != nil || got != liar.addr.String() {
		t.Errorf("heard %q from %v, %v; want only what was sent with the address %s", got, from, err, liar.addr)
	}
}

func TestLinkState(t *testing.T) {
	config := testConfig(t)
	config.MTU = 1400
	f := openFabric(t, config)
	a := addNode(t, f, "a", podsOfA)
	pod := runPod(t, a, "a1")
	for _, ns := range []*netns.Namespace{f.ControlPlane(), a.Namespace(), pod.ns} {
		err := ns.Do(func() error {
			links, err := dump(netlink.LinkList)
			if err != nil {
				return err
			}
			for _, link := range links {
				attrs := link.Attrs()
				up := attrs.Flags&1 != 0
				if attrs.Name != "lo" && attrs.MTU != 1400 || !up {
					t.Errorf("%s: %s has MTU %d, up is %v", ns.Path(), attrs.Name, attrs.MTU, up)
				}
			}
			addrs, err := netlink.AddrList(nil, netlink.FAMILY_V6)
			for _, addr := range addrs {
				if !addr.IP.IsLoopback() {
					t.Errorf("%s: there is an address %s", ns.Path(), addr.IPNet)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Remove takes everything away, as often as it is called, and the machine never notices.
func TestRemoveLeavesNothing(t *testing.T) {
	config := testConfig(t)
	before := machine(t)
	f := openFabric(t, config)
	a := addNode(t, f, "a", podsOfA)
	addNode(t, f, "b", podsOfB)
	pod := runPod(t, a, "a1")
	// A socket keeps a namespace alive: its links have to go nevertheless.
	listener, err := a.Namespace().Listen(t.Context(), "tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	same(t, before)
	for range 2 {
		if err := f.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(config.RunDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", config.RunDir, err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), config.RunDir) {
		t.Errorf("mounts are left, %v", err)
	}
	err = pod.ns.Do(func() error {
		links, err := dump(netlink.LinkList)
		if len(links) != 1 {
			t.Errorf("the pod has %d links, want only lo", len(links))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, before)
}

// Nodes keep their addresses by name, across Remove, until RemoveNode.
func TestNodeAddresses(t *testing.T) {
	config := testConfig(t)
	f := openFabric(t, config)
	if f.Address() != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("the control plane has %s", f.Address())
	}
	want := map[string]netip.Addr{}
	for name, podCIDR := range map[string]netip.Prefix{"a": podsOfA, "b": podsOfB} {
		want[name] = addNode(t, f, name, podCIDR).Address()
	}
	if err := f.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	f = openFabric(t, config)
	if got := addNode(t, f, "b", podsOfB); got.Address() != want["b"] || got != addNode(t, f, "b", podsOfB) {
		t.Errorf("b had %s and now has %s", want["b"], got.Address())
	}
	if err := f.RemoveNode(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := addNode(t, f, "c", podsOfA).Address(); got == want["a"] || got == want["b"] {
		t.Errorf("c has %s, which is or just was another's", got)
	}
	if names, err := f.Nodes(); err != nil || strings.Join(names, " ") != "b c" {
		t.Errorf("nodes %v, %v", names, err)
	}
}

func TestRefusedNodes(t *testing.T) {
	f := openFabric(t, testConfig(t))
	addNode(t, f, "a", podsOfA)
	for _, test := range []struct{ name, podCIDR, want string }{
		{"b", "10.1.1.128/25", "node a has 10.1.1.0/24"},
		{"a", "10.1.2.0/24", "node a has 10.1.1.0/24"},
		{"b", "10.3.0.0/24", "not a part"},
	} {
		_, err := f.AddNode(t.Context(), test.name, netip.MustParsePrefix(test.podCIDR))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %v; want %q", test.name, test.podCIDR, err, test.want)
		}
	}
	if _, err := Open(t.Context(), f.config); err == nil || !strings.Contains(err.Error(), "another process has this network open") {
		t.Errorf("a second Open: %v", err)
	}
	a := f.nodes["a"]
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.SetUp(t.Context(), "p", "/nowhere"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("SetUp after Close: %v", err)
	}
	if _, err := a.Namespace().Dial(t.Context(), "tcp", "10.0.0.1:80"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
	if _, err := f.AddNode(t.Context(), "b", podsOfB); !errors.Is(err, os.ErrClosed) {
		t.Errorf("AddNode after Close: %v", err)
	}
	if err := f.RemoveNode(t.Context(), "a"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("RemoveNode after Close: %v", err)
	}
}

// Two clusters with the same prefixes and node names don't meet.
func TestSideBySide(t *testing.T) {
	var pods [2]*sandbox
	for i := range pods {
		config := testConfig(t)
		config.Cluster += filepath.Base(config.RunDir) + string(rune('0'+i))
		pods[i] = runPod(t, addNode(t, openFabric(t, config), "a", podsOfA), "p")
		if i == 0 {
			greet(t, pods[0].ns)
		}
	}
	if pods[0].addr != pods[1].addr {
		t.Fatalf("addresses %s and %s", pods[0].addr, pods[1].addr)
	}
	if _, err := ask(t, pods[1].ns, pods[0].addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the pod of the second cluster: %v", err)
	}
}
