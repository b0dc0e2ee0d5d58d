package embedded

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// usage is what a cgroup has used.
type usage struct {
	cpu        uint64 // nanoseconds since it was made
	memory     uint64 // bytes now, page cache included
	workingSet uint64 // bytes that cannot be dropped at once
	rss        uint64
	faults     uint64
	major      uint64
	processes  uint64
	limit      uint64 // of memory; 0 is none
}

// usageOf reads a cgroup's counters. What cannot be read, because the cgroup is gone meanwhile, is zero.
func (m *machine) usageOf(cgroup string) usage {
	if m.unified {
		return usageV2(filepath.Join(cgroupRoot, cgroup))
	}
	return m.usageV1(cgroup)
}

func usageV2(dir string) usage {
	memory := readPairs(filepath.Join(dir, "memory.stat"))
	u := usage{
		cpu:       readPairs(filepath.Join(dir, "cpu.stat"))["usage_usec"] * 1000,
		memory:    readNumber(filepath.Join(dir, "memory.current")),
		rss:       memory["anon"],
		faults:    memory["pgfault"],
		major:     memory["pgmajfault"],
		processes: readNumber(filepath.Join(dir, "pids.current")),
		limit:     readNumber(filepath.Join(dir, "memory.max")),
	}
	u.workingSet = u.memory - min(u.memory, memory["inactive_file"])
	return u
}

// unlimitedV1 is from where on v1's memory limit means none: it is the largest multiple of a page.
const unlimitedV1 = 1 << 62

func (m *machine) usageV1(cgroup string) usage {
	memory := readPairs(filepath.Join(m.hierarchy("memory"), cgroup, "memory.stat"))
	u := usage{
		cpu:       readNumber(filepath.Join(m.hierarchy("cpuacct"), cgroup, "cpuacct.usage")),
		memory:    readNumber(filepath.Join(m.hierarchy("memory"), cgroup, "memory.usage_in_bytes")),
		rss:       memory["total_rss"],
		faults:    memory["total_pgfault"],
		major:     memory["total_pgmajfault"],
		processes: readNumber(filepath.Join(m.hierarchy("pids"), cgroup, "pids.current")),
		limit:     readNumber(filepath.Join(m.hierarchy("memory"), cgroup, "memory.limit_in_bytes")),
	}
	if u.limit >= unlimitedV1 {
		u.limit = 0
	}
	u.workingSet = u.memory - min(u.memory, memory["total_inactive_file"])
	return u
}

// hierarchy is where v1 has a controller mounted, alone or with others.
func (m *machine) hierarchy(controller string) string {
	for _, dir := range m.hierarchies {
		for name := range strings.SplitSeq(filepath.Base(dir), ",") {
			if name == controller {
				return dir
			}
		}
	}
	return filepath.Join(cgroupRoot, controller)
}

func readNumber(path string) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max": there is no limit
	}
	return number
}

// readPairs reads a file of lines with a name and a number.
func readPairs(path string) map[string]uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	pairs := map[string]uint64{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, " ")
		if number, err := strconv.ParseUint(value, 10, 64); err == nil {
			pairs[name] = number
		}
	}
	return pairs
}

// treeUsage counts what a tree takes on disk, without what is mounted in it.
func treeUsage(dir string) (bytes, inodes uint64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		inodes++
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += uint64(stat.Blocks) * 512
		} else {
			bytes += uint64(info.Size())
		}
		return nil
	})
	return bytes, inodes
}

func number(value uint64) *cri.UInt64Value { return &cri.UInt64Value{Value: value} }

func (u *usage) criCPU(now int64) *cri.CpuUsage {
	return &cri.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: number(u.cpu)}
}

func (u *usage) criMemory(now int64) *cri.MemoryUsage {
	usage := &cri.MemoryUsage{
		Timestamp: now, WorkingSetBytes: number(u.workingSet), UsageBytes: number(u.memory), RssBytes: number(u.rss),
		PageFaults: number(u.faults), MajorPageFaults: number(u.major),
	}
	if u.limit > 0 {
		usage.AvailableBytes = number(u.limit - min(u.limit, u.workingSet))
	}
	return usage
}

// ContainerStats tells what a container uses.
func (r *Runtime) ContainerStats(_ context.Context, request *cri.ContainerStatsRequest) (*cri.ContainerStatsResponse, error) {
	c, err := r.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatsResponse{Stats: r.containerStats(c)}, nil
}

func (r *Runtime) containerStats(c *container) *cri.ContainerStats {
	now := r.config.Clock.Now().UnixNano()
	stats := &cri.ContainerStats{Attributes: &cri.ContainerAttributes{
		Id: c.record.ID, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations,
	}}
	if s, err := r.sandbox(c.record.SandboxID); err == nil && r.isRunning(c) {
		u := r.machine.usageOf(filepath.Join(r.cgroupParent(s), c.record.ID))
		stats.Cpu, stats.Memory = u.criCPU(now), u.criMemory(now)
	}
	bytes, inodes := treeUsage(filepath.Join(r.containerDir(c.record.ID), "rw"))
	stats.WritableLayer = &cri.FilesystemUsage{
		Timestamp: now, FsId: &cri.FilesystemIdentifier{Mountpoint: r.containersDir()}, UsedBytes: number(bytes), InodesUsed: number(inodes),
	}
	return stats
}

// ListContainerStats tells what the running containers use that the filter lets through.
func (r *Runtime) ListContainerStats(_ context.Context, request *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	filter := request.GetFilter()
	r.mu.Lock()
	var chosen []*container
	for id, c := range r.containers {
		if c.state.Phase == protocol.Running && strings.HasPrefix(id, filter.GetId()) &&
			strings.HasPrefix(c.record.SandboxID, filter.GetPodSandboxId()) && matches(filter.GetLabelSelector(), c.config.Labels) {
			chosen = append(chosen, c)
		}
	}
	r.mu.Unlock()
	response := &cri.ListContainerStatsResponse{}
	for _, c := range chosen {
		response.Stats = append(response.Stats, r.containerStats(c))
	}
	return response, nil
}

// PodSandboxStats tells what a pod uses.
func (r *Runtime) PodSandboxStats(_ context.Context, request *cri.PodSandboxStatsRequest) (*cri.PodSandboxStatsResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &cri.PodSandboxStatsResponse{Stats: r.sandboxStats(s)}, nil
}

func (r *Runtime) sandboxStats(s *sandbox) *cri.PodSandboxStats {
	now := r.config.Clock.Now().UnixNano()
	u := r.machine.usageOf(r.cgroupParent(s))
	stats := &cri.PodSandboxStats{
		Attributes: &cri.PodSandboxAttributes{Id: s.record.ID, Metadata: s.config.Metadata, Labels: s.config.Labels, Annotations: s.config.Annotations},
		Linux: &cri.LinuxPodSandboxStats{
			Cpu: u.criCPU(now), Memory: u.criMemory(now), Process: &cri.ProcessUsage{Timestamp: now, ProcessCount: number(u.processes)},
			Network: r.networkUsage(s, now),
		},
	}
	for _, c := range r.containersOf(s.record.ID) {
		if r.isRunning(c) {
			stats.Linux.Containers = append(stats.Linux.Containers, r.containerStats(c))
		}
	}
	return stats
}

// networkUsage reads the counters of the pod's interfaces, through a process of the pod.
func (r *Runtime) networkUsage(s *sandbox, now int64) *cri.NetworkUsage {
	r.mu.Lock()
	pid := s.helperPID
	r.mu.Unlock()
	if !s.owns("net") || pid == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net/dev"))
	if err != nil {
		return nil
	}
	usage := &cri.NetworkUsage{Timestamp: now}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, counters, ok := strings.Cut(line, ":")
		fields := strings.Fields(counters)
		if name = strings.TrimSpace(name); !ok || name == "lo" || len(fields) < 16 {
			continue
		}
		parsed := make([]uint64, 16)
		for i := range parsed {
			parsed[i], _ = strconv.ParseUint(fields[i], 10, 64)
		}
		each := &cri.NetworkInterfaceUsage{
			Name: name, RxBytes: number(parsed[0]), RxErrors: number(parsed[2]), TxBytes: number(parsed[8]), TxErrors: number(parsed[10]),
		}
		if usage.DefaultInterface == nil || name == "eth0" {
			usage.DefaultInterface = each
		}
		usage.Interfaces = append(usage.Interfaces, each)
	}
	return usage
}

// ListPodSandboxStats tells what the pods use that the filter lets through.
func (r *Runtime) ListPodSandboxStats(_ context.Context, request *cri.ListPodSandboxStatsRequest) (*cri.ListPodSandboxStatsResponse, error) {
	filter := request.GetFilter()
	r.mu.Lock()
	var chosen []*sandbox
	for id, s := range r.sandboxes {
		if s.record.Ready && strings.HasPrefix(id, filter.GetId()) && matches(filter.GetLabelSelector(), s.config.Labels) {
			chosen = append(chosen, s)
		}
	}
	r.mu.Unlock()
	response := &cri.ListPodSandboxStatsResponse{}
	for _, s := range chosen {
		response.Stats = append(response.Stats, r.sandboxStats(s))
	}
	return response, nil
}
