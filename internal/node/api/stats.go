package api

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// The types of /stats/summary: the part of the kubelet's stats API v1alpha1 that its readers use.
type (
	// Summary is the answer.
	Summary struct {
		Node NodeStats  `json:"node"`
		Pods []PodStats `json:"pods"`
	}
	// NodeStats is what the pods of the node use together.
	NodeStats struct {
		NodeName  string       `json:"nodeName"`
		StartTime metav1.Time  `json:"startTime"`
		CPU       *CPUStats    `json:"cpu,omitempty"`
		Memory    *MemoryStats `json:"memory,omitempty"`
	}
	// PodStats is what a pod and its containers use.
	PodStats struct {
		PodRef     PodReference     `json:"podRef"`
		StartTime  metav1.Time      `json:"startTime"`
		Containers []ContainerStats `json:"containers"`
		CPU        *CPUStats        `json:"cpu,omitempty"`
		Memory     *MemoryStats     `json:"memory,omitempty"`
	}
	// PodReference names a pod.
	PodReference struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	}
	// ContainerStats is what a container uses.
	ContainerStats struct {
		Name      string       `json:"name"`
		StartTime metav1.Time  `json:"startTime"`
		CPU       *CPUStats    `json:"cpu,omitempty"`
		Memory    *MemoryStats `json:"memory,omitempty"`
		RootFs    *FsStats     `json:"rootfs,omitempty"`
	}
	// CPUStats is CPU time.
	CPUStats struct {
		Time                 metav1.Time `json:"time"`
		UsageNanoCores       *uint64     `json:"usageNanoCores,omitempty"`
		UsageCoreNanoSeconds *uint64     `json:"usageCoreNanoSeconds,omitempty"`
	}
	// MemoryStats is memory in bytes.
	MemoryStats struct {
		Time            metav1.Time `json:"time"`
		AvailableBytes  *uint64     `json:"availableBytes,omitempty"`
		UsageBytes      *uint64     `json:"usageBytes,omitempty"`
		WorkingSetBytes *uint64     `json:"workingSetBytes,omitempty"`
		RSSBytes        *uint64     `json:"rssBytes,omitempty"`
		PageFaults      *uint64     `json:"pageFaults,omitempty"`
		MajorPageFaults *uint64     `json:"majorPageFaults,omitempty"`
	}
	// FsStats is disk space in bytes.
	FsStats struct {
		Time      metav1.Time `json:"time"`
		UsedBytes *uint64     `json:"usedBytes,omitempty"`
	}
)

func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	resp, err := s.Runtime.ListContainerStats(r.Context(), &cri.ListContainerStatsRequest{})
	if err != nil {
		http.Error(w, fmt.Sprintf("statistics of the runtime: %v", err), http.StatusInternalServerError)
		return
	}
	answer(w, s.summarize(resp.Stats))
}

// summarize puts the containers' figures under the pods of the node.
func (s *Server) summarize(stats []*cri.ContainerStats) Summary {
	byPod := map[string][]*cri.ContainerStats{}
	for _, c := range stats {
		uid := c.GetAttributes().GetLabels()[translate.LabelPodUID]
		byPod[uid] = append(byPod[uid], c)
	}
	now := metav1.NewTime(s.Clock.Now())
	out := Summary{Node: NodeStats{NodeName: s.Node, CPU: &CPUStats{Time: now}, Memory: &MemoryStats{Time: now}}, Pods: []PodStats{}}
	for _, pod := range s.Pods() {
		list := byPod[string(pod.UID)]
		if len(list) == 0 {
			continue
		}
		p := PodStats{
			PodRef: PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}, CPU: &CPUStats{Time: now}, Memory: &MemoryStats{Time: now},
			Containers: []ContainerStats{},
		}
		if pod.Status.StartTime != nil {
			p.StartTime = *pod.Status.StartTime
		}
		for _, c := range list {
			one := containerStats(c)
			if st := statusOf(pod, one.Name); st != nil && st.State.Running != nil {
				one.StartTime = st.State.Running.StartedAt
			}
			p.Containers = append(p.Containers, one)
			p.CPU.add(one.CPU)
			p.Memory.add(one.Memory)
		}
		out.Node.CPU.add(p.CPU)
		out.Node.Memory.add(p.Memory)
		out.Pods = append(out.Pods, p)
	}
	return out
}

func containerStats(c *cri.ContainerStats) ContainerStats {
	out := ContainerStats{Name: c.GetAttributes().GetLabels()[translate.LabelContainerName]}
	if u := c.Cpu; u != nil {
		out.CPU = &CPUStats{Time: at(u.Timestamp), UsageNanoCores: number(u.UsageNanoCores), UsageCoreNanoSeconds: number(u.UsageCoreNanoSeconds)}
	}
	if u := c.Memory; u != nil {
		out.Memory = &MemoryStats{
			Time: at(u.Timestamp), AvailableBytes: number(u.AvailableBytes), UsageBytes: number(u.UsageBytes), WorkingSetBytes: number(u.WorkingSetBytes),
			RSSBytes: number(u.RssBytes), PageFaults: number(u.PageFaults), MajorPageFaults: number(u.MajorPageFaults),
		}
	}
	if u := c.WritableLayer; u != nil {
		out.RootFs = &FsStats{Time: at(u.Timestamp), UsedBytes: number(u.UsedBytes)}
	}
	return out
}

func at(nanoseconds int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanoseconds)) }

func number(v *cri.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	n := v.Value
	return &n
}

func (c *CPUStats) add(o *CPUStats) {
	if o != nil {
		c.UsageNanoCores = sum(c.UsageNanoCores, o.UsageNanoCores)
		c.UsageCoreNanoSeconds = sum(c.UsageCoreNanoSeconds, o.UsageCoreNanoSeconds)
	}
}

func (m *MemoryStats) add(o *MemoryStats) {
	if o != nil {
		m.UsageBytes = sum(m.UsageBytes, o.UsageBytes)
		m.WorkingSetBytes = sum(m.WorkingSetBytes, o.WorkingSetBytes)
		m.RSSBytes = sum(m.RSSBytes, o.RSSBytes)
	}
}

// sum adds figures of which some may be unknown.
func sum(a, b *uint64) *uint64 {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	n := *a + *b
	return &n
}
