package api

import (
	"fmt"
	"net/http"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// resourceMetrics serves what pods use in the form of Prometheus, with the names that the kubelet's /metrics/resource has: metrics-server
// and others read them.
func (s *Server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	resp, err := s.Runtime.ListContainerStats(r.Context(), &cri.ListContainerStatsRequest{})
	scrapeError := 0
	if err != nil {
		scrapeError = 1
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, formatMetrics(s.summarize(resp.GetStats()), scrapeError))
}

// family is one metric with all its samples.
type family struct {
	name, kind, help string
	samples          []string
}

func (f *family) add(labels string, value float64, milliseconds int64) {
	f.samples = append(f.samples, fmt.Sprintf("%s%s %g %d\n", f.name, labels, value, milliseconds))
}

// formatMetrics writes a summary. Times are those of the measurements.
func formatMetrics(s Summary, scrapeError int) string {
	cpu := func(what string) *family {
		return &family{name: what + "_cpu_usage_seconds_total", kind: "counter", help: "Cumulative cpu time consumed by the " + what + " in core-seconds"}
	}
	memory := func(what string) *family {
		return &family{name: what + "_memory_working_set_bytes", kind: "gauge", help: "Current working set of the " + what + " in bytes"}
	}
	containerCPU, containerMemory, nodeCPU, nodeMemory := cpu("container"), memory("container"), cpu("node"), memory("node")
	podCPU, podMemory := cpu("pod"), memory("pod")
	start := &family{name: "container_start_time_seconds", kind: "gauge", help: "Start time of the container since unix epoch in seconds"}
	for _, p := range s.Pods {
		labels := fmt.Sprintf("{namespace=%q,pod=%q}", p.PodRef.Namespace, p.PodRef.Name)
		addUsage(podCPU, podMemory, labels, p.CPU, p.Memory)
		for _, c := range p.Containers {
			labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.Name, p.PodRef.Namespace, p.PodRef.Name)
			addUsage(containerCPU, containerMemory, labels, c.CPU, c.Memory)
			if !c.StartTime.IsZero() {
				start.samples = append(start.samples, fmt.Sprintf("%s%s %d\n", start.name, labels, c.StartTime.Unix()))
			}
		}
	}
	addUsage(nodeCPU, nodeMemory, "", s.Node.CPU, s.Node.Memory)
	failed := &family{name: "resource_scrape_error", kind: "gauge", help: "1 if there was an error while getting container metrics, 0 otherwise"}
	failed.samples = []string{fmt.Sprintf("%s %d\n", failed.name, scrapeError)}
	var b strings.Builder
	for _, f := range []*family{containerCPU, containerMemory, start, nodeCPU, nodeMemory, podCPU, podMemory, failed} {
		if len(f.samples) > 0 {
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, f.kind, strings.Join(f.samples, ""))
		}
	}
	return b.String()
}

func addUsage(cpu, memory *family, labels string, c *CPUStats, m *MemoryStats) {
	if c != nil && c.UsageCoreNanoSeconds != nil {
		cpu.add(labels, float64(*c.UsageCoreNanoSeconds)/1e9, c.Time.UnixMilli())
	}
	if m != nil && m.WorkingSetBytes != nil {
		memory.add(labels, float64(*m.WorkingSetBytes), m.Time.UnixMilli())
	}
}

// checkpoint is refused: no runtime that nodes have here can do it.
func (s *Server) checkpoint(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "checkpoints of containers are not supported by this node", http.StatusNotImplemented)
}
