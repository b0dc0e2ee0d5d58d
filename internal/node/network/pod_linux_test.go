package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
	"github.com/bayplan/bayplan/internal/node/network/ipam"
)

func TestSetUpAgain(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	pod, other := newSandbox(t, "pod"), runPod(t, a, "other")
	greet(t, pod.ns)
	for range 3 {
		first := pod.addr
		pod.setUp(t, a)
		if first.IsValid() && pod.addr != first || pod.addr == other.addr {
			t.Errorf("the address was %s and is %s; the other pod has %s", first, pod.addr, other.addr)
		}
		if seen, err := ask(t, other.ns, pod.addr); err != nil || seen != other.addr {
			t.Errorf("seen as %s, %v", seen, err)
		}
	}
	if got := a.Addresses("pod"); !slices.Equal(got, []netip.Addr{pod.addr}) {
		t.Errorf("Addresses: %v", got)
	}
}

// What has been taken apart by somebody is put together again, by SetUp for pods and by AddNode for nodes.
func TestRepair(t *testing.T) {
	config := testConfig(t)
	f := openFabric(t, config)
	a := addNode(t, f, "a", podsOfA)
	pod := runPod(t, a, "pod")
	greet(t, pod.ns)
	podLink := config.interfaceName(podLink, "a", "pod")
	inPod := func() *netns.Namespace { return pod.ns }
	inNode := func() *netns.Namespace { return a.Namespace() }
	inHub := func() *netns.Namespace { return f.ControlPlane() }
	for _, damage := range []struct {
		name string
		in   func() *netns.Namespace
		do   func() error
	}{
		{"the pod lost its link", inPod, func() error { return deleteLink("eth0") }},
		{"the node lost the pod's link", inNode, func() error { return deleteLink(podLink) }},
		{"the pod's link is down", inPod, func() error { return withLink("eth0", netlink.LinkSetDown) }},
		{"the pod has another address", inPod, func() error {
			return withLink("eth0", func(l netlink.Link) error {
				return errors.Join(netlink.AddrDel(l, &netlink.Addr{IPNet: single(pod.addr)}),
					netlink.AddrAdd(l, &netlink.Addr{IPNet: single(netip.MustParseAddr("10.77.7.7"))}))
			})
		}},
		{"the node lost its link", inNode, func() error { return deleteLink("eth0") }},
		{"the control plane lost the node's link", inHub, func() error { return deleteLink(config.interfaceName("nod", "a")) }},
		{"forwarding is off", inNode, func() error { return a.in.set(setting{"ipv4/ip_forward", "0"}) }},
	} {
		if err := damage.in().Do(damage.do); err != nil {
			t.Fatalf("%s: %v", damage.name, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = openFabric(t, config)
		a = addNode(t, f, "a", podsOfA)
		pod.setUp(t, a)
		if seen, err := ask(t, f.ControlPlane(), pod.addr); err != nil || seen != f.Address() {
			t.Errorf("%s: after the repair seen as %s, %v", damage.name, seen, err)
		}
		if seen, err := ask(t, pod.ns, pod.addr); err != nil || seen != pod.addr {
			t.Errorf("%s: after the repair the pod sees itself as %s, %v", damage.name, seen, err)
		}
		for i, node := range []*netns.Namespace{f.ControlPlane(), a.Namespace()} {
			_ = node.Do(func() error {
				if links, err := dump(netlink.LinkList); err != nil || len(links) != 2+i {
					t.Errorf("%s: %d links in %s, %v", damage.name, len(links), node.Path(), err)
				}
				return nil
			})
		}
	}
}

func withLink(name string, do func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return do(link)
}

func deleteLink(name string) error { return withLink(name, netlink.LinkDel) }

func TestTearDown(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	pod := runPod(t, a, "pod")
	for range 2 {
		if err := a.TearDown(t.Context(), "pod", pod.ns.Path()); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.TearDown(t.Context(), "never", "/nowhere"); err != nil {
		t.Error(err)
	}
	if got := a.Addresses("pod"); len(got) != 0 {
		t.Errorf("the pod still has %v", got)
	}
	// The same sandbox again gets another address, so late are they reused.
	first := pod.addr
	if pod.setUp(t, a); pod.addr == first {
		t.Errorf("the address %s is reused at once", first)
	}
	// The namespace may be gone before.
	gone := runPod(t, a, "gone")
	if err := errors.Join(gone.ns.Close(), netns.Delete(gone.ns.Path())); err != nil {
		t.Fatal(err)
	}
	if err := a.TearDown(t.Context(), "gone", gone.ns.Path()); err != nil {
		t.Error(err)
	}
}

// A SetUp that fails keeps nothing, and doesn't touch what isn't ours.
func TestFailedSetUp(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	if _, err := a.SetUp(t.Context(), "pod", filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no namespace: %v", err)
	}
	foreign := newSandbox(t, "foreign")
	err := foreign.ns.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "eth1"}
		veth.Name = "eth0"
		return netlink.LinkAdd(veth)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.SetUp(t.Context(), "foreign", foreign.ns.Path()); err == nil {
		t.Error("an eth0 of somebody else is overwritten")
	}
	if err := foreign.ns.Do(func() error { return withLink("eth1", func(netlink.Link) error { return nil }) }); err != nil {
		t.Errorf("the foreign interface: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.SetUp(ctx, "late", foreign.ns.Path()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	if owners := a.pool.Owners(); len(owners) != 0 {
		t.Errorf("addresses are left with %v", owners)
	}
}

func TestExhausted(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", netip.MustParsePrefix("10.1.1.0/30"))
	runPod(t, a, "only")
	second := newSandbox(t, "second")
	_, err := a.SetUp(t.Context(), "second", second.ns.Path())
	if err == nil || !errors.Is(err, ipam.ErrExhausted) {
		t.Errorf("the second pod of a /30: %v", err)
	}
	if err := a.TearDown(t.Context(), "only", ""); err != nil {
		t.Fatal(err)
	}
	second.setUp(t, a)
}

// Retain takes back what sandboxes had that are gone, and leaves the others alone.
func TestRetain(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	var pods []*sandbox
	for i := range 4 {
		pods = append(pods, runPod(t, a, fmt.Sprintf("pod-%d", i)))
	}
	greet(t, pods[2].ns)
	if err := a.pool.Free("pod-3"); err != nil { // a link without an address, as of another state directory
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Retain(t.Context(), []string{"pod-0", "pod-2", "unknown"}); err != nil {
			t.Fatal(err)
		}
	}
	if owners := a.pool.Owners(); !slices.Equal(owners, []string{"pod-0", "pod-2"}) {
		t.Errorf("addresses are with %v", owners)
	}
	if links, err := a.in.links(); err != nil || len(links) != 4 {
		t.Errorf("the node has %d links, %v; want lo, eth0 and two pods'", len(links), err)
	}
	if seen, err := ask(t, pods[0].ns, pods[2].addr); err != nil || seen != pods[0].addr {
		t.Errorf("a retained pod: seen as %s, %v", seen, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	const count = 30
	var pods [count]*sandbox
	for i := range pods {
		pods[i] = newSandbox(t, fmt.Sprintf("pod-%d", i))
	}
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			addrs, err := a.SetUp(t.Context(), pods[i].id, pods[i].ns.Path())
			if err != nil {
				t.Error(err)
				return
			}
			pods[i].addr = addrs[0]
		})
	}
	wg.Wait()
	greet(t, pods[0].ns)
	seen := map[netip.Addr]bool{}
	for _, pod := range pods {
		got, err := ask(t, pod.ns, pods[0].addr)
		if err != nil || got != pod.addr || seen[got] {
			t.Errorf("%s (%s): seen as %s, %v", pod.id, pod.addr, got, err)
		}
		seen[got] = true
	}
	for i := range pods {
		wg.Go(func() {
			// Twice at once, and with a SetUp between: whatever comes last, nothing is left half done.
			for range 2 {
				wg.Go(func() {
					if err := a.TearDown(t.Context(), pods[i].id, pods[i].ns.Path()); err != nil {
						t.Error(err)
					}
				})
			}
			if i%2 == 0 {
				if _, err := a.SetUp(t.Context(), pods[i].id, pods[i].ns.Path()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if links, err := a.in.links(); err != nil || len(links) != 2+len(a.pool.Owners()) {
		t.Errorf("%d links, %v, for %d pods", len(links), err, len(a.pool.Owners()))
	}
}
