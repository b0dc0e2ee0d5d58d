package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// realNode is a node in the machine's own hierarchies.
func realNode(t testing.TB) (*Node, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	h, err := Open()
	if err != nil {
		t.Skip(err)
	}
	root := fmt.Sprintf("/bayplan-test-cgroup/%d-%d", os.Getpid(), time.Now().UnixNano())
	n := NewNode(h, root)
	t.Cleanup(func() {
		if err := n.Remove(); err != nil {
			t.Error(err)
		}
		for _, dir := range h.Dirs() {
			if exists(filepath.Join(dir, root)) {
				t.Errorf("left behind: %s%s", dir, root)
			}
		}
	})
	if err := n.EnsureNode(t.Context(), 2048, 8<<30); err != nil {
		t.Fatal(err)
	}
	return n, root
}

func (n *Node) read(t *testing.T, controller, cgroup, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.hierarchies.dir(controller), cgroup, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestRealPodIsLimited(t *testing.T) {
	n, root := realNode(t)
	parent := path.Join(root, Burstable, "podu")
	r := &cri.LinuxContainerResources{CpuShares: 307, CpuPeriod: 100000, CpuQuota: 20000, MemoryLimitInBytes: 64 << 20, Unified: map[string]string{"pids.max": "9"}}
	if err := n.EnsurePod(t.Context(), parent, r); err != nil {
		t.Fatal(err)
	}
	want := [][3]string{{"cpu", "cpu.shares", "307"}, {"cpu", "cpu.cfs_quota_us", "20000"}, {"memory", "memory.limit_in_bytes", "67108864"}, {"pids", "pids.max", "9"}}
	if n.hierarchies.Unified() {
		want = [][3]string{{"cpu", "cpu.weight", "40"}, {"cpu", "cpu.max", "20000 100000"}, {"memory", "memory.max", "67108864"}, {"pids", "pids.max", "9"}}
	}
	if got := n.read(t, "memory", root, want[2][1]); got != "8589934592" {
		t.Errorf("the node's memory limit is %q", got)
	}
	for _, w := range want {
		if got := n.read(t, w[0], parent, w[1]); got != w[2] {
			t.Errorf("%s is %q, want %q", w[1], got, w[2])
		}
	}
	if err := n.EnsurePod(t.Context(), parent, &cri.LinuxContainerResources{CpuShares: 2}); err != nil {
		t.Errorf("limits cannot be taken away in place: %v", err)
	}
}

func TestRealRemovalWaitsForProcesses(t *testing.T) {
	n, root := realNode(t)
	parent := path.Join(root, "podu")
	if err := n.EnsurePod(t.Context(), parent, &cri.LinuxContainerResources{CpuShares: 2}); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	for _, dir := range n.hierarchies.Dirs() {
		if err := write(filepath.Join(dir, parent, "cgroup.procs"), fmt.Sprint(child.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.RemovePod(t.Context(), "u"); err == nil || !strings.Contains(err.Error(), syscall.EBUSY.Error()) {
		t.Fatalf("removing a cgroup with a process in it: %v", err)
	}
	if err := child.Process.Kill(); err != nil { // not waited for: it leaves while the cgroup is being removed
		t.Fatal(err)
	}
	if err := n.RemovePod(t.Context(), "u"); err != nil {
		t.Error(err)
	}
}

func BenchmarkEnsurePod(b *testing.B) {
	n, root := realNode(b)
	r := &cri.LinuxContainerResources{CpuShares: 307, CpuQuota: 20000, MemoryLimitInBytes: 64 << 20}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		uid := fmt.Sprint(i)
		if err := n.EnsurePod(b.Context(), path.Join(root, Burstable, "pod"+uid), r); err != nil {
			b.Fatal(err)
		}
		if err := n.RemovePod(b.Context(), uid); err != nil {
			b.Fatal(err)
		}
	}
}
