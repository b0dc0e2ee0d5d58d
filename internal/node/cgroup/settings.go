package cgroup

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// setting is a value that is written to a file of a cgroup.
type setting struct {
	controller, file, value string
	// needed is set when somebody asked for the value: without it a file that is missing is nothing to speak of.
	needed bool
}

const (
	minShares, maxShares = 2, 262144
	maxWeight            = 10000
	defaultPeriod        = 100000 // microseconds
)

// Weight is version 2's cpu.weight for version 1's cpu.shares: 10 to the power of (l²+125l)/612 - 7/34 with l = log2(shares), rounded up, which takes the
// least, the default and the most of the one to those of the other (2 to 1, 1024 to 100, 262144 to 10000). It is what container runtimes use
// for the containers since runc 1.3.2; see kubernetes.io/blog/2026/01/30/new-cgroup-v1-to-v2-cpu-conversion-formula.
func Weight(shares int64) int64 {
	if shares <= minShares {
		return 1
	}
	l := math.Log2(float64(min(shares, maxShares)))
	return min(maxWeight, int64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34))))
}

// settings are all values of a cgroup, in the order in which they have to be written. What is zero in r is not limited.
func (h *Hierarchies) settings(r *cri.LinuxContainerResources) []setting {
	if h.unified {
		return settingsV2(r)
	}
	return settingsV1(r)
}

func settingsV1(r *cri.LinuxContainerResources) []setting {
	out := []setting{
		{"cpu", "cpu.shares", number(max(minShares, r.CpuShares)), true},
		{"cpu", "cpu.cfs_period_us", number(period(r)), r.CpuQuota > 0},
		{"cpu", "cpu.cfs_quota_us", limit(r.CpuQuota, "-1"), r.CpuQuota > 0},
	}
	if r.MemorySwapLimitInBytes != 0 {
		// Memory with swap must never be less than memory alone, so it is out of the way while that changes.
		out = append(out, setting{"memory", "memory.memsw.limit_in_bytes", "-1", true})
	}
	out = append(out, setting{"memory", "memory.limit_in_bytes", limit(r.MemoryLimitInBytes, "-1"), r.MemoryLimitInBytes > 0})
	if r.MemorySwapLimitInBytes > 0 {
		out = append(out, setting{"memory", "memory.memsw.limit_in_bytes", number(r.MemorySwapLimitInBytes), true})
	}
	return append(out, processes(r))
}

func settingsV2(r *cri.LinuxContainerResources) []setting {
	out := []setting{
		{"cpu", "cpu.weight", number(Weight(r.CpuShares)), true},
		{"cpu", "cpu.max", limit(r.CpuQuota, "max") + " " + number(period(r)), r.CpuQuota > 0},
		{"memory", "memory.max", limit(r.MemoryLimitInBytes, "max"), r.MemoryLimitInBytes > 0},
	}
	if r.MemorySwapLimitInBytes != 0 {
		swap := "max"
		if r.MemorySwapLimitInBytes > 0 { // the CRI counts swap together with memory, version 2 apart
			swap = number(max(0, r.MemorySwapLimitInBytes-r.MemoryLimitInBytes))
		}
		out = append(out, setting{"memory", "memory.swap.max", swap, true})
	}
	out = append(out, processes(r))
	for _, file := range slices.Sorted(maps.Keys(r.Unified)) {
		if controller, _, ok := strings.Cut(file, "."); ok && file != pidsMax && !strings.Contains(file, "/") {
			out = append(out, setting{controller, file, r.Unified[file], true})
		}
	}
	return out
}

// pidsMax is where the CRI has the limit of processes: among the settings that have their names from version 2.
const pidsMax = "pids.max"

func processes(r *cri.LinuxContainerResources) setting {
	if value := r.Unified[pidsMax]; value != "" {
		return setting{"pids", pidsMax, value, true}
	}
	return setting{"pids", pidsMax, "max", false}
}

// hugepages limits every size of huge pages that the cgroup in dir knows, those that are not asked for to nothing.
func (h *Hierarchies) hugepages(dir string, limits []*cri.HugepageLimit) []setting {
	suffix := ".limit_in_bytes"
	if h.unified {
		suffix = ".max"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "hugetlb.*"+suffix)) // the pattern is well-formed
	asked, known := map[string]uint64{}, map[string]bool{}
	for _, l := range limits {
		asked[l.PageSize] = l.Limit
	}
	var out []setting
	for _, path := range files {
		file := filepath.Base(path)
		size, _, _ := strings.Cut(strings.TrimPrefix(file, "hugetlb."), ".")
		out = append(out, setting{"hugetlb", file, strconv.FormatUint(asked[size], 10), true})
		known[size] = true
	}
	for _, size := range slices.Sorted(maps.Keys(asked)) {
		if !known[size] {
			out = append(out, setting{"hugetlb", "hugetlb." + size + suffix, strconv.FormatUint(asked[size], 10), asked[size] > 0})
		}
	}
	slices.SortFunc(out, func(a, b setting) int { return strings.Compare(a.file, b.file) })
	return out
}

func period(r *cri.LinuxContainerResources) int64 {
	if r.CpuPeriod > 0 {
		return r.CpuPeriod
	}
	return defaultPeriod
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// limit is a limit as the kernel writes it.
func limit(n int64, none string) string {
	if n <= 0 {
		return none
	}
	return number(n)
}
