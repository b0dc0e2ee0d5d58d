package network

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// child is what the process that gets killed is told, and what it answers.
type child struct {
	Config           Config
	PodPath, OldPath string     // namespaces of the sandboxes "pod" and "orphan"
	Pod, Node        netip.Addr // the addresses of "pod" and of node a
}

// TestChild is the process that TestKilled kills.
func TestChild(t *testing.T) {
	order := os.Getenv("BAYPLAN_NETWORK_TEST_CHILD")
	if order == "" {
		t.Skip("only TestKilled runs this, in a process of its own")
	}
	var c child
	if err := json.Unmarshal([]byte(order), &c); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), c.Config)
	if err != nil {
		t.Fatal(err)
	}
	a, b := addNode(t, f, "a", podsOfA), addNode(t, f, "b", podsOfB)
	addrs, err := a.SetUp(t.Context(), "pod", c.PodPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetUp(t.Context(), "orphan", c.OldPath); err != nil {
		t.Fatal(err)
	}
	c.Pod, c.Node = addrs[0], a.Address()
	if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, os.Stdin) // until the end
}

// killed runs a child up to its answer and kills it.
func killed(t *testing.T, c child) child {
	t.Helper()
	order, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "BAYPLAN_NETWORK_TEST_CHILD="+string(order))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	return c
}

// After kill -9 pods and their connections go on, the next process finds everything as it was, and takes back what belongs to nobody.
func TestKilled(t *testing.T) {
	unchanged(t)
	config := testConfig(t)
	pod, orphan := newSandbox(t, "pod"), newSandbox(t, "orphan")
	c := killed(t, child{Config: config, PodPath: pod.ns.Path(), OldPath: orphan.ns.Path()})
	listener, err := pod.ns.Listen(t.Context(), "tcp", netip.AddrPortFrom(c.Pod, 7).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := orphan.ns.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	f := openFabric(t, config)
	if names, err := f.Nodes(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("nodes %v, %v", names, err)
	}
	a, b := addNode(t, f, "a", podsOfA), addNode(t, f, "b", podsOfB)
	if a.Address() != c.Node {
		t.Errorf("node a had %s and has %s", c.Node, a.Address())
	}
	if pod.setUp(t, a); pod.addr != c.Pod {
		t.Errorf("the pod had %s and has %s", c.Pod, pod.addr)
	}
	if _, err := io.WriteString(client, "still here\n"); err != nil {
		t.Error(err)
	}
	if line, err := bufio.NewReader(server).ReadString('\n'); err != nil || line != "still here\n" {
		t.Errorf("over the connection came %q, %v", line, err)
	}
	if err := b.Retain(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if left := b.Addresses("orphan"); len(left) != 0 {
		t.Errorf("the orphan has %v", left)
	}
}

// Remove by runDir alone takes away what a killed process left.
func TestKilledAndRemoved(t *testing.T) {
	unchanged(t)
	config := testConfig(t)
	pod, orphan := newSandbox(t, "pod"), newSandbox(t, "orphan")
	killed(t, child{Config: config, PodPath: pod.ns.Path(), OldPath: orphan.ns.Path()})
	for range 2 {
		if err := Remove(t.Context(), config.RunDir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(config.RunDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", config.RunDir, err)
	}
	for _, s := range []*sandbox{pod, orphan} {
		_ = s.ns.Do(func() error {
			if links, err := dump(netlink.LinkList); err != nil || len(links) != 1 {
				t.Errorf("sandbox %s has %d links, %v", s.id, len(links), err)
			}
			return nil
		})
	}
}
