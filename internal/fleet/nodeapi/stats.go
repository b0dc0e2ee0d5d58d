package nodeapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/fleet/life"
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
		NodeName string      `json:"nodeName"`
		CPU      CPUStats    `json:"cpu"`
		Memory   MemoryStats `json:"memory"`
	}
	// PodStats is what a pod and its containers use.
	PodStats struct {
		PodRef     PodReference     `json:"podRef"`
		StartTime  metav1.Time      `json:"startTime"`
		Containers []ContainerStats `json:"containers"`
		CPU        CPUStats         `json:"cpu"`
		Memory     MemoryStats      `json:"memory"`
	}
	// PodReference names a pod.
	PodReference struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	}
	// ContainerStats is what a container uses.
	ContainerStats struct {
		Name      string      `json:"name"`
		StartTime metav1.Time `json:"startTime"`
		CPU       CPUStats    `json:"cpu"`
		Memory    MemoryStats `json:"memory"`
	}
	// CPUStats is CPU time.
	CPUStats struct {
		Time                 metav1.Time `json:"time"`
		UsageNanoCores       uint64      `json:"usageNanoCores"`
		UsageCoreNanoSeconds uint64      `json:"usageCoreNanoSeconds"`
	}
	// MemoryStats is memory in bytes.
	MemoryStats struct {
		Time            metav1.Time `json:"time"`
		UsageBytes      uint64      `json:"usageBytes"`
		WorkingSetBytes uint64      `json:"workingSetBytes"`
		RSSBytes        uint64      `json:"rssBytes"`
	}
)

func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	node := s.node(r)
	answer(w, summarize(node, s.Source.UsageOf(node), s.Clock.Now()))
}

// summarize sums up what containers use, by pod and for the node.
func summarize(node string, pods []PodUsage, now time.Time) Summary {
	out := Summary{Node: NodeStats{NodeName: node}, Pods: []PodStats{}}
	out.Node.CPU, out.Node.Memory = nothing(now)
	for _, u := range pods {
		p := PodStats{PodRef: PodReference{Name: u.Pod.Name, Namespace: u.Pod.Namespace, UID: string(u.Pod.UID)}, Containers: []ContainerStats{}}
		p.CPU, p.Memory = nothing(now)
		if u.Pod.Status.StartTime != nil {
			p.StartTime = *u.Pod.Status.StartTime
		}
		for _, c := range u.Containers {
			one := containerStats(c, now)
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

func nothing(now time.Time) (CPUStats, MemoryStats) {
	at := metav1.NewTime(now)
	return CPUStats{Time: at}, MemoryStats{Time: at}
}

func containerStats(c life.ContainerUsage, now time.Time) ContainerStats {
	out := ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.Started)}
	out.CPU, out.Memory = nothing(now)
	out.CPU.UsageNanoCores, out.CPU.UsageCoreNanoSeconds = uint64(c.CPU*1e9), uint64(c.CPUTime*1e9)
	memory := uint64(c.Memory)
	out.Memory.UsageBytes, out.Memory.WorkingSetBytes, out.Memory.RSSBytes = memory, memory, memory
	return out
}

func (c *CPUStats) add(o CPUStats) {
	c.UsageNanoCores += o.UsageNanoCores
	c.UsageCoreNanoSeconds += o.UsageCoreNanoSeconds
}

func (m *MemoryStats) add(o MemoryStats) {
	m.UsageBytes += o.UsageBytes
	m.WorkingSetBytes += o.WorkingSetBytes
	m.RSSBytes += o.RSSBytes
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	node := s.node(r)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, formatMetrics(summarize(node, s.Source.UsageOf(node), s.Clock.Now())))
}

// family is one metric with all its samples.
type family struct {
	name, kind, help string
	samples          strings.Builder
}

func (f *family) add(labels string, value float64, at metav1.Time) {
	fmt.Fprintf(&f.samples, "%s%s %g %d\n", f.name, labels, value, at.UnixMilli())
}

// formatMetrics writes a summary with the names that the kubelet's /metrics/resource has.
func formatMetrics(s Summary) string {
	cpu := func(what string) *family {
		return &family{name: what + "_cpu_usage_seconds_total", kind: "counter", help: "Cumulative cpu time consumed by the " + what + " in core-seconds"}
	}
	memory := func(what string) *family {
		return &family{name: what + "_memory_working_set_bytes", kind: "gauge", help: "Current working set of the " + what + " in bytes"}
	}
	families := []*family{cpu("container"), memory("container"), cpu("node"), memory("node"), cpu("pod"), memory("pod")}
	start := &family{name: "container_start_time_seconds", kind: "gauge", help: "Start time of the container since unix epoch in seconds"}
	add := func(of int, labels string, c CPUStats, m MemoryStats) {
		families[of].add(labels, float64(c.UsageCoreNanoSeconds)/1e9, c.Time)
		families[of+1].add(labels, float64(m.WorkingSetBytes), m.Time)
	}
	add(2, "", s.Node.CPU, s.Node.Memory)
	for _, p := range s.Pods {
		add(4, fmt.Sprintf("{namespace=%q,pod=%q}", p.PodRef.Namespace, p.PodRef.Name), p.CPU, p.Memory)
		for _, c := range p.Containers {
			labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.Name, p.PodRef.Namespace, p.PodRef.Name)
			add(0, labels, c.CPU, c.Memory)
			fmt.Fprintf(&start.samples, "%s%s %d\n", start.name, labels, c.StartTime.Unix())
		}
	}
	failed := &family{name: "resource_scrape_error", kind: "gauge", help: "1 if there was an error while getting container metrics, 0 otherwise"}
	fmt.Fprintf(&failed.samples, "%s 0\n", failed.name)
	var b strings.Builder
	for _, f := range append(families, start, failed) {
		if f.samples.Len() > 0 {
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, f.kind, f.samples.String())
		}
	}
	return b.String()
}
