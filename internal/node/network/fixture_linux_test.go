package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
)

// The nodes of the tests.
var (
	podsOfA = netip.MustParsePrefix("10.1.1.0/24")
	podsOfB = netip.MustParsePrefix("10.1.2.0/24")
)

// needRoot skips a test that makes namespaces where that is not allowed.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
}

// testConfig is the configuration of a cluster of this test alone.
func testConfig(t testing.TB) Config {
	t.Helper()
	needRoot(t)
	config := validConfig()
	config.Cluster = fmt.Sprintf("test-%d-%s", os.Getpid(), t.Name())
	dir := t.TempDir()
	config.RunDir, config.StateDir = filepath.Join(dir, "run"), filepath.Join(dir, "state")
	t.Cleanup(func() {
		if err := Remove(context.Background(), config.RunDir); err != nil {
			t.Error(err)
		}
	})
	return config
}

func openFabric(t testing.TB, config Config) *Fabric {
	t.Helper()
	f, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func addNode(t testing.TB, f *Fabric, name string, podCIDR netip.Prefix) *Node {
	t.Helper()
	n, err := f.AddNode(t.Context(), name, podCIDR)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sandbox is a pod's namespace as a container runtime makes it.
type sandbox struct {
	id   string
	ns   *netns.Namespace
	addr netip.Addr
}

func newSandbox(t testing.TB, id string) *sandbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), id)
	ns, err := netns.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ns.Close(), netns.Delete(path)); err != nil {
			t.Error(err)
		}
	})
	return &sandbox{id: id, ns: ns}
}

// runPod makes a sandbox and sets its network up.
func runPod(t testing.TB, n *Node, id string) *sandbox {
	t.Helper()
	s := newSandbox(t, id)
	s.setUp(t, n)
	return s
}

func (s *sandbox) setUp(t testing.TB, n *Node) {
	t.Helper()
	addrs, err := n.SetUp(t.Context(), s.id, s.ns.Path())
	if err != nil {
		t.Fatal(err)
	}
	if len(addrs) != 1 || !n.PodCIDR().Contains(addrs[0]) {
		t.Fatalf("sandbox %s has addresses %v, want one of %s", s.id, addrs, n.PodCIDR())
	}
	s.addr = addrs[0]
}

// greet serves, on every address of the namespace, each client's own address.
func greet(t testing.TB, ns *netns.Namespace) {
	t.Helper()
	listener, err := ns.Listen(t.Context(), "tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, conn.RemoteAddr().String())
			conn.Close()
		}
	}()
}

// ask dials a greeter from inside the namespace and returns the address that the greeter saw.
func ask(t testing.TB, from *netns.Namespace, to netip.Addr) (netip.Addr, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", netip.AddrPortFrom(to, 80).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	data, err := io.ReadAll(conn)
	if err != nil {
		return netip.Addr{}, err
	}
	seen, err := netip.ParseAddrPort(string(data))
	return seen.Addr().Unmap(), err
}

// machine describes the network of the machine itself: what the fabric must not change.
func machine(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	links, err := dump(netlink.LinkList)
	for _, link := range links {
		a := link.Attrs()
		fmt.Fprintf(&out, "link %d %s %s %s mtu %d %s %s\n", a.Index, a.Name, link.Type(), a.HardwareAddr, a.MTU, a.Flags, a.OperState)
	}
	addrs, addrErr := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	for _, addr := range addrs {
		fmt.Fprintf(&out, "address %d %s\n", addr.LinkIndex, addr.IPNet)
	}
	routes, routeErr := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	})
	for _, route := range routes {
		fmt.Fprintf(&out, "route %s\n", route)
	}
	rules, ruleErr := netlink.RuleList(netlink.FAMILY_ALL)
	for _, rule := range rules {
		fmt.Fprintf(&out, "rule %s\n", rule)
	}
	conn, nftErr := nftables.New()
	if nftErr == nil {
		var tables []*nftables.Table
		tables, nftErr = conn.ListTables()
		for _, table := range tables {
			fmt.Fprintf(&out, "nftables %d %s\n", table.Family, table.Name)
		}
	}
	if err := errors.Join(err, addrErr, routeErr, ruleErr, nftErr, settings(&out)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// settings writes down /proc/sys/net, apart from what counts or is of the moment.
func settings(out io.Writer) error {
	return filepath.WalkDir("/proc/sys/net", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Base(path) {
		case "nf_conntrack_count", "stable_secret", "flush", "tcp_fastopen_key":
			return nil
		}
		if data, err := os.ReadFile(path); err == nil {
			fmt.Fprintf(out, "%s %s", path, data)
		}
		return nil
	})
}

// unchanged checks at the end of the test that the machine's network is as it was.
func unchanged(t testing.TB) {
	t.Helper()
	needRoot(t)
	before := machine(t)
	t.Cleanup(func() { same(t, before) })
}

func same(t testing.TB, before string) {
	t.Helper()
	after := machine(t)
	for line := range strings.Lines(before) {
		if !strings.Contains(after, line) {
			t.Errorf("the machine lost: %s", line)
		}
	}
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			t.Errorf("the machine has newly: %s", line)
		}
	}
}
