package network

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// transfer sends bytes from one pod to another and returns how long it took from before the first to after the last.
func transfer(t testing.TB, from, to *sandbox, size int64) time.Duration {
	t.Helper()
	listener, err := to.ns.Listen(t.Context(), "tcp", netip.AddrPortFrom(to.addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	start := time.Now()
	client, err := from.ns.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.CopyN(client, zeros{}, size)
		client.Close()
	}()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if n, err := io.Copy(io.Discard, server); err != nil || n != size {
		t.Fatalf("%d of %d bytes came, %v", n, size, err)
	}
	return time.Since(start)
}

// A packet of the default MTU has 1448 bytes of data in 1514 on the link.
const onLink = 1514.0 / 1448

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Each direction has its own limit, which can be changed and taken away.
func TestShape(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	shaped, free := runPod(t, a, "shaped"), runPod(t, a, "free")
	const size = 1_000_000
	for _, step := range []struct{ ingress, egress uint64 }{
		{16_000_000, 8_000_000}, {16_000_000, 8_000_000}, {0, 16_000_000}, {8_000_000, 0},
	} {
		if err := a.Shape(t.Context(), "shaped", step.ingress, step.egress); err != nil {
			t.Fatal(err)
		}
		checkRate(t, "ingress", step.ingress, size, transfer(t, free, shaped, size))
		checkRate(t, "egress", step.egress, size, transfer(t, shaped, free, size))
	}
	if err := a.Shape(t.Context(), "shaped", 0, 0); err != nil {
		t.Fatal(err)
	}
	if links, err := a.in.links(); err != nil || len(links) != 4 {
		t.Errorf("%d links, %v: want lo, eth0 and two pods'", len(links), err)
	}
}

// The kernel's buckets have the rates that were asked for, also after a change.
func TestKernelRates(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	runPod(t, a, "pod")
	for _, step := range []struct{ ingress, egress uint64 }{{40_000_000, 8_000_000}, {1_000_000, 0}, {0, 10_000_000_000}, {0, 0}} {
		if err := a.Shape(t.Context(), "pod", step.ingress, step.egress); err != nil {
			t.Fatal(err)
		}
		for use, want := range map[string]uint64{podLink: step.ingress, ifbLink: step.egress} {
			if got := kernelRate(t, a, f.config.interfaceName(use, "a", "pod")); got != want {
				t.Errorf("%+v: %s lets %d bit/s through", step, use, got)
			}
		}
	}
}

// kernelRate reads the rate of the bucket at an interface, in bits a second; 0 when there is none.
func kernelRate(t *testing.T, n *Node, name string) uint64 {
	t.Helper()
	link, err := n.in.link(name)
	if err != nil || link == nil {
		return 0
	}
	qdiscs, err := dump(func() ([]netlink.Qdisc, error) { return n.in.QdiscList(link) })
	if err != nil {
		t.Fatal(err)
	}
	for _, qdisc := range qdiscs {
		if tbf, ok := qdisc.(*netlink.Tbf); ok {
			return 8 * tbf.Rate
		}
	}
	return 0
}

func TestShapeRefusals(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	runPod(t, a, "pod")
	for _, test := range []struct {
		sandbox         string
		ingress, egress uint64
		want            string
	}{
		{"nobody", 1_000_000, 0, "SetUp comes first"},
		{"pod", 10, 0, "ingress: a bandwidth of 10 bit/s is too low"},
		{"pod", 0, 10, "egress: a bandwidth of 10 bit/s is too low"},
	} {
		err := a.Shape(t.Context(), test.sandbox, test.ingress, test.egress)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %d %d: %v; want %q", test.sandbox, test.ingress, test.egress, err, test.want)
		}
	}
	if links, err := a.in.links(); err != nil || len(links) != 3 {
		t.Errorf("%d links, %v: want lo, eth0 and the pod's", len(links), err)
	}
}

// checkRate compares what came with what may come: a full bucket, and from then on the rate. That bound holds at any load. A busy machine makes
// it slower, so that from below only the order of magnitude is checked; TestKernelRates looks at the figures that the kernel has.
func checkRate(t *testing.T, direction string, want uint64, size float64, took time.Duration) {
	t.Helper()
	if want == 0 {
		if took > 2*time.Second {
			t.Errorf("%s: %v without a limit", direction, took)
		}
		return
	}
	b, err := newBucket(want, DefaultMTU)
	if err != nil {
		t.Fatal(err)
	}
	got := 8 * (size*onLink - float64(b.burst)) / took.Seconds()
	t.Logf("%s: %.2f Mbit/s of %d", direction, got/1e6, want/1_000_000)
	if got > 1.05*float64(want) || got < 0.25*float64(want) {
		t.Errorf("%s: %.2f Mbit/s, want %d", direction, got/1e6, want/1_000_000)
	}
}

// TearDown, Retain and Remove take the interfaces of shaping along.
func TestShapedPodsGo(t *testing.T) {
	f := openFabric(t, testConfig(t))
	a := addNode(t, f, "a", podsOfA)
	for _, id := range []string{"one", "two", "three"} {
		runPod(t, a, id)
		if err := a.Shape(t.Context(), id, 1_000_000, 1_000_000); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int) {
		t.Helper()
		if links, err := a.in.links(); err != nil || len(links) != want {
			t.Errorf("%d links, %v; want %d", len(links), err, want)
		}
	}
	count(2 + 3*2)
	if err := a.TearDown(t.Context(), "one", ""); err != nil {
		t.Fatal(err)
	}
	count(2 + 2*2)
	if err := a.Retain(t.Context(), []string{"three"}); err != nil {
		t.Fatal(err)
	}
	count(2 + 2)
	node := a.Namespace().Path()
	if err := demolish(node); err != nil {
		t.Fatal(err)
	}
	if err := a.Namespace().Do(func() error {
		links, err := dump(netlink.LinkList)
		if len(links) != 1 {
			t.Errorf("%d links are left", len(links))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// The module is loaded only when it is not there, and without interfaces in the machine's namespace.
func TestLoadIfb(t *testing.T) {
	dir := t.TempDir()
	script, calls := filepath.Join(dir, "modprobe"), filepath.Join(dir, "calls")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >>"+calls+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	loadIfb(t.Context(), dir, script)
	loadIfb(t.Context(), filepath.Join(dir, "ifb"), script)
	if got, err := os.ReadFile(calls); err != nil || string(got) != "ifb numifbs=0\n" {
		t.Errorf("modprobe was called with %q, %v", got, err)
	}
}
