package cgroup

import (
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestEnsurePodV1(t *testing.T) {
	f := v1(t)
	for _, file := range []string{"cpu,cpuacct/n/burstable/podu/cpu.shares", "cpu,cpuacct/n/burstable/podu/cpu.cfs_period_us",
		"cpu,cpuacct/n/burstable/podu/cpu.cfs_quota_us", "memory/n/burstable/podu/memory.limit_in_bytes", "pids/n/burstable/podu/pids.max"} {
		f.put(file, "")
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	n := NewNode(f.Hierarchies, "n")
	r := &cri.LinuxContainerResources{CpuShares: 102, CpuQuota: 20000, MemoryLimitInBytes: 64, MemorySwapLimitInBytes: 64,
		HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 4}}}
	for range 2 {
		if err := n.EnsurePod(ctx, "/n/burstable/podu", r); err != nil {
			t.Fatal(err)
		}
	}
	f.expect(map[string]string{
		"cpu,cpuacct/n/burstable/podu/cpu.shares": "102", "cpu,cpuacct/n/burstable/podu/cpu.cfs_quota_us": "20000",
		"memory/n/burstable/podu/memory.limit_in_bytes": "64", "pids/n/burstable/podu/pids.max": "max",
	})
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if strings.Count(log, "memory.memsw.limit_in_bytes") != 1 {
		t.Errorf("what the machine lacks is to be told once:\n%s", log)
	}
	if err := n.EnsurePod(ctx, "n/burstable/podu", &cri.LinuxContainerResources{}); err != nil {
		t.Fatal(err)
	}
	f.expect(map[string]string{"cpu,cpuacct/n/burstable/podu/cpu.cfs_quota_us": "-1", "memory/n/burstable/podu/memory.limit_in_bytes": "-1"})
	for _, outside := range []string{"/other/podu", "n", "/n/../x", "/nn/podu"} {
		if err := n.EnsurePod(ctx, outside, r); err == nil {
			t.Errorf("%s is not below the node and was made", outside)
		}
	}
}

func TestEnsurePodV2(t *testing.T) {
	f := v2(t)
	f.put("n/cgroup.controllers", "cpu memory pids hugetlb")
	f.put("n/cgroup.subtree_control", "cpu memory pids hugetlb")
	for _, file := range []string{"cpu.weight", "cpu.max", "memory.max", "pids.max", "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max", "hugetlb.1GB.max"} {
		f.put("n/podu/"+file, "")
	}
	r := &cri.LinuxContainerResources{CpuShares: 307, CpuQuota: 50000, HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 4096}}}
	if err := NewNode(f.Hierarchies, "/n").EnsurePod(t.Context(), "/n/podu", r); err != nil {
		t.Fatal(err)
	}
	f.expect(map[string]string{"n/podu/cpu.weight": "40", "n/podu/cpu.max": "50000 100000", "n/podu/memory.max": "max",
		"n/podu/hugetlb.2MB.max": "4096", "n/podu/hugetlb.2MB.rsvd.max": "4096", "n/podu/hugetlb.1GB.max": "0"})
}

func TestClasses(t *testing.T) {
	f := v1(t)
	for _, dir := range []string{"n", "n/burstable", "n/besteffort"} {
		f.put("cpu,cpuacct/"+dir+"/cpu.shares", "1024")
	}
	n := NewNode(f.Hierarchies, "n")
	if err := n.EnsureNode(t.Context(), 2048, 8<<30); err != nil {
		t.Fatal(err)
	}
	f.expect(map[string]string{"cpu,cpuacct/n/cpu.shares": "2048", "cpu,cpuacct/n/burstable/cpu.shares": "2", "cpu,cpuacct/n/besteffort/cpu.shares": "2"})
	for shares, want := range map[int64]string{0: "2", 400: "400", 1 << 30: "262144"} {
		if err := n.SetClass(t.Context(), Burstable, shares); err != nil {
			t.Fatal(err)
		}
		f.expect(map[string]string{"cpu,cpuacct/n/burstable/cpu.shares": want})
	}
}

func TestRemovePodAndRetain(t *testing.T) {
	f := v1(t)
	n := NewNode(f.Hierarchies, "top/c/n")
	for _, path := range []string{"podg", "burstable/podb", "besteffort/pode", "helpers"} {
		if err := f.Make("top/c/n/" + path); err != nil {
			t.Fatal(err)
		}
	}
	n.Retain(t.Context(), func(uid string) bool { return uid == "b" })
	if !f.gone("memory/top/c/n/podg") || !f.gone("cpu,cpuacct/top/c/n/besteffort/pode") || f.gone("memory/top/c/n/burstable/podb") || f.gone("memory/top/c/n/helpers") {
		t.Error("only pods that are not kept must go")
	}
	for range 2 {
		if err := n.RemovePod(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	if !f.gone("memory/top/c/n/burstable/podb") {
		t.Error("the pod's cgroup is still there")
	}
	for _, uid := range []string{"", "../x", "a/b"} {
		if err := n.RemovePod(t.Context(), uid); err == nil {
			t.Errorf("UID %q was taken", uid)
		}
	}
	if err := n.Remove(); err != nil {
		t.Error(err)
	}
	if !f.gone("memory/top") || !f.gone("unified/top") {
		t.Error("the tree is still there")
	}
}
