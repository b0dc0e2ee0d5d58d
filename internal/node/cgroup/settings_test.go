package cgroup

import (
	"fmt"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"
)

func TestWeight(t *testing.T) {
	for shares, want := range map[int64]int64{-1: 1, 0: 1, 2: 1, 102: 17, 307: 40, 512: 59, 1024: 100, 2048: 174, 262144: 10000, 1 << 40: 10000} {
		if got := Weight(shares); got != want {
			t.Errorf("Weight(%d) = %d, want %d", shares, got, want)
		}
	}
}

func TestWeightGrowsWithShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(0, 300000).Draw(t, "a"), rapid.Int64Range(0, 300000).Draw(t, "b")
		if a <= b && Weight(a) > Weight(b) {
			t.Errorf("%d shares weigh %d, %d weigh %d", a, Weight(a), b, Weight(b))
		}
		if w := Weight(a); w < 1 || w > maxWeight {
			t.Errorf("%d shares weigh %d", a, w)
		}
	})
}

func lines(settings []setting) string {
	var out []string
	for _, s := range settings {
		out = append(out, fmt.Sprintf("%s=%s", s.file, s.value))
	}
	return strings.Join(out, ", ")
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name, v1, v2 string
		r            *cri.LinuxContainerResources
	}{
		{
			"nothing", "cpu.shares=2, cpu.cfs_period_us=100000, cpu.cfs_quota_us=-1, memory.limit_in_bytes=-1, pids.max=max",
			"cpu.weight=1, cpu.max=max 100000, memory.max=max, pids.max=max", &cri.LinuxContainerResources{},
		}, {
			"all", "cpu.shares=1024, cpu.cfs_period_us=50000, cpu.cfs_quota_us=25000, memory.memsw.limit_in_bytes=-1, memory.limit_in_bytes=1000, memory.memsw.limit_in_bytes=1500, pids.max=7",
			"cpu.weight=100, cpu.max=25000 50000, memory.max=1000, memory.swap.max=500, pids.max=7, memory.high=900",
			&cri.LinuxContainerResources{CpuShares: 1024, CpuPeriod: 50000, CpuQuota: 25000, MemoryLimitInBytes: 1000, MemorySwapLimitInBytes: 1500,
				Unified: map[string]string{"pids.max": "7", "memory.high": "900", "../x.y": "1"}},
		}, {
			"swap without limit", "cpu.shares=2, cpu.cfs_period_us=100000, cpu.cfs_quota_us=-1, memory.memsw.limit_in_bytes=-1, memory.limit_in_bytes=1, pids.max=max",
			"cpu.weight=1, cpu.max=max 100000, memory.max=1, memory.swap.max=max, pids.max=max",
			&cri.LinuxContainerResources{MemoryLimitInBytes: 1, MemorySwapLimitInBytes: -1},
		},
	} {
		if got := lines(settingsV1(c.r)); got != c.v1 {
			t.Errorf("%s, version 1:\n%s\nwant\n%s", c.name, got, c.v1)
		}
		if got := lines(settingsV2(c.r)); got != c.v2 {
			t.Errorf("%s, version 2:\n%s\nwant\n%s", c.name, got, c.v2)
		}
	}
}
