package translate

import (
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
)

// The units of the kernel's CPU controller.
const (
	minShares     = 2
	maxShares     = 262144
	sharesPerCPU  = 1024
	quotaPeriod   = 100000 // microseconds
	minQuota      = 1000   // microseconds
	milliPerCPU   = 1000
	oomGuaranteed = -997
	oomBestEffort = 1000
	// systemCritical is the lowest priority of system-node-critical pods, which the OOM killer spares like guaranteed ones.
	systemNodeCritical = 2000001000
)

// Shares is the CPU weight (cpu.shares of cgroup v1) for a request in thousandths of a core.
func Shares(milliCPU int64) int64 {
	return min(maxShares, max(minShares, milliCPU*sharesPerCPU/milliPerCPU))
}

// Quota is the CPU time in microseconds per period of 100 ms for a limit in thousandths of a core; 0 means no limit.
func Quota(milliCPU int64) int64 {
	if milliCPU == 0 {
		return 0
	}
	return max(minQuota, milliCPU*quotaPeriod/milliPerCPU)
}

// OOMScoreAdj tells the kernel's OOM killer whom to take first: best-effort pods, then burstable ones by how little of the node's
// memory they asked for, and guaranteed ones last. For burstable containers it is 1000 - 1000*request/capacity, kept within 3 to 999, so
// that they stay between the other classes. A sidecar is as safe as the safest container that it serves.
func OOMScoreAdj(pod *v1.Pod, c *v1.Container, memoryCapacity int64) int64 {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= systemNodeCritical {
		return oomGuaranteed
	}
	switch lifecycle.QOSClass(pod) {
	case v1.PodQOSGuaranteed:
		return oomGuaranteed
	case v1.PodQOSBestEffort:
		return oomBestEffort
	}
	score := burstableScore(c, memoryCapacity)
	if lifecycle.IsSidecar(c) {
		for i := range pod.Spec.Containers {
			score = min(score, burstableScore(&pod.Spec.Containers[i], memoryCapacity))
		}
	}
	return score
}

func burstableScore(c *v1.Container, capacity int64) int64 {
	score := int64(1000)
	if capacity > 0 {
		score -= 1000 * c.Resources.Requests.Memory().Value() / capacity
	}
	return min(oomBestEffort-1, max(1000+oomGuaranteed, score))
}

// Resources are the cgroup parameters of one container.
func Resources(pod *v1.Pod, c *v1.Container, r v1.ResourceRequirements, memoryCapacity int64) *cri.LinuxContainerResources {
	request, limit := r.Requests.Cpu().MilliValue(), r.Limits.Cpu().MilliValue()
	if _, set := r.Requests[v1.ResourceCPU]; !set && limit > 0 {
		request = limit
	}
	out := &cri.LinuxContainerResources{
		CpuShares:          Shares(request),
		CpuPeriod:          quotaPeriod,
		CpuQuota:           Quota(limit),
		MemoryLimitInBytes: r.Limits.Memory().Value(),
		OomScoreAdj:        OOMScoreAdj(pod, c, memoryCapacity),
	}
	out.HugepageLimits = hugepageLimits(r.Limits)
	return out
}

func hugepageLimits(limits v1.ResourceList) (out []*cri.HugepageLimit) {
	for name, q := range limits {
		if size, ok := hugepageSize(name); ok {
			out = append(out, &cri.HugepageLimit{PageSize: size, Limit: uint64(q.Value())})
		}
	}
	slices.SortFunc(out, func(a, b *cri.HugepageLimit) int { return strings.Compare(a.PageSize, b.PageSize) })
	return out
}

// hugepageSize is 2MB for hugepages-2Mi, as the kernel names it.
func hugepageSize(name v1.ResourceName) (string, bool) {
	size, ok := map[v1.ResourceName]string{"hugepages-64Ki": "64KB", "hugepages-2Mi": "2MB", "hugepages-32Mi": "32MB", "hugepages-1Gi": "1GB"}[name]
	return size, ok
}

// CgroupParent is where a pod's cgroup is: guaranteed pods directly below the node's cgroup, others below that of their class.
func CgroupParent(root string, pod *v1.Pod) string {
	class := ""
	switch lifecycle.QOSClass(pod) {
	case v1.PodQOSBestEffort:
		class = "besteffort"
	case v1.PodQOSBurstable:
		class = "burstable"
	}
	return path.Join("/", root, class, "pod"+string(pod.UID))
}

// PodResources are the cgroup parameters of a whole pod: the sum of its requests, and of its limits when every container has one.
func PodResources(pod *v1.Pod) *cri.LinuxContainerResources {
	requests, limits := podTotals(pod)
	out := &cri.LinuxContainerResources{CpuShares: Shares(requests.Cpu().MilliValue()), HugepageLimits: hugepageLimits(limits)}
	if cpu, ok := limits[v1.ResourceCPU]; ok && allLimited(pod, v1.ResourceCPU) {
		out.CpuPeriod, out.CpuQuota = quotaPeriod, Quota(cpu.MilliValue())
	}
	if memory, ok := limits[v1.ResourceMemory]; ok && allLimited(pod, v1.ResourceMemory) {
		out.MemoryLimitInBytes = memory.Value()
	}
	return out
}
