package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/node/eviction"
	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
)

// pressureHeld is for how long a pressure is told after it is over, so that the node doesn't take new pods just to evict them.
const pressureHeld = 5 * time.Minute

// pressures are the conditions by which a node tells that it is short of something, in the order in which the status has them.
var pressures = []struct {
	condition v1.NodeConditionType
	// reason, message and event tell that it is short (second) or not (first).
	reason, message, event [2]string
}{
	{
		v1.NodeMemoryPressure, [2]string{"KubeletHasSufficientMemory", "KubeletHasInsufficientMemory"},
		[2]string{"kubelet has sufficient memory available", "kubelet has insufficient memory available"},
		[2]string{"NodeHasSufficientMemory", "NodeHasInsufficientMemory"},
	},
	{
		v1.NodeDiskPressure, [2]string{"KubeletHasNoDiskPressure", "KubeletHasDiskPressure"},
		[2]string{"kubelet has no disk pressure", "kubelet has disk pressure"},
		[2]string{"NodeHasNoDiskPressure", "NodeHasDiskPressure"},
	},
	{
		v1.NodePIDPressure, [2]string{"KubeletHasSufficientPID", "KubeletHasInsufficientPID"},
		[2]string{"kubelet has sufficient PID available", "kubelet has insufficient PID available"},
		[2]string{"NodeHasSufficientPID", "NodeHasInsufficientPID"},
	},
}

// pressureConditions are those conditions now.
func (n *Node) pressureConditions() []v1.NodeCondition {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]v1.NodeCondition, len(pressures))
	for i, p := range pressures {
		state, status := 0, v1.ConditionFalse
		if !n.pressure[p.condition].IsZero() {
			state, status = 1, v1.ConditionTrue
		}
		out[i] = v1.NodeCondition{Type: p.condition, Status: status, Reason: p.reason[state], Message: p.message[state]}
	}
	return out
}

// notePressure keeps the pressure on record until it was over for a while.
func (n *Node) notePressure(condition v1.NodeConditionType, short bool) {
	now := n.cfg.Clock.Now()
	n.mu.Lock()
	seen := n.pressure[condition]
	changed := false
	switch {
	case short:
		changed = seen.IsZero()
		n.pressure[condition] = now
	case !seen.IsZero() && now.Sub(seen) >= pressureHeld:
		changed = true
		delete(n.pressure, condition)
	}
	n.mu.Unlock()
	if changed {
		n.touch()
	}
}

// refuses tells under which conditions the node is that keep it from taking the pod: nil takes it. Under pressure of memory alone only best-effort
// pods are refused that don't tolerate it.
func (n *Node) refuses(pod *v1.Pod) []string {
	if eviction.Critical(pod) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for _, p := range pressures {
		if !n.pressure[p.condition].IsZero() {
			out = append(out, string(p.condition))
		}
	}
	if len(out) == 1 && out[0] == string(v1.NodeMemoryPressure) &&
		(lifecycle.QOSClass(pod) != v1.PodQOSBestEffort || tolerates(pod, v1.TaintNodeMemoryPressure)) {
		return nil
	}
	return out
}

// underPressure is the end of a pod that came under such conditions.
func underPressure(conditions []string) *lifecycle.Ending {
	return &lifecycle.Ending{Refused: true, Phase: v1.PodFailed, Reason: "Evicted", Message: fmt.Sprintf("The node had condition: [%s]. ", strings.Join(conditions, ", "))}
}

// relieve evicts what has outgrown its limits, and one pod more for each resource of which the node is short.
func (n *Node) relieve(ctx context.Context, images *image.Collector) {
	used, err := n.pods.measure(ctx)
	if err != nil {
		n.failures.Error(ctx, err, "Cannot tell what pods use")
		return
	}
	for _, u := range used {
		if message := eviction.OverLimit(u.pod, u.disk); message != "" {
			n.pods.evict(u.pod, message)
		}
	}
	n.relieveMemory(ctx, used)
	n.relieveDisk(ctx, used, images)
	n.relievePIDs(ctx)
}

// relieveMemory looks at that of the machine, and at what the node may give to pods.
func (n *Node) relieveMemory(ctx context.Context, used []podUsage) {
	if n.cfg.MemoryThreshold <= 0 {
		return
	}
	usages, sum := []eviction.Usage{}, int64(0)
	for _, u := range used {
		usage := eviction.Usage{Pod: u.pod, Containers: u.memory}
		for _, bytes := range u.memory {
			sum += bytes
		}
		usages = append(usages, usage)
	}
	available := n.forPods(v1.ResourceMemory) - sum
	if free, err := n.cfg.FreeMemory(); err == nil {
		available = min(available, free)
	}
	n.evictFor(v1.NodeMemoryPressure, eviction.Shortage{Resource: v1.ResourceMemory, Threshold: n.cfg.MemoryThreshold, Available: available}, usages)
}

// relieveDisk removes images that nobody uses before it evicts anybody.
func (n *Node) relieveDisk(ctx context.Context, used []podUsage, images *image.Collector) {
	if n.cfg.DiskThreshold <= 0 {
		return
	}
	free, err := n.cfg.FreeDisk()
	if err != nil {
		n.failures.Error(ctx, err, "Cannot tell how much of the disk is free")
		return
	}
	if free < n.cfg.DiskThreshold {
		if removed := n.collect(ctx, images.Reclaim); len(removed) > 0 {
			return // the next look tells whether that was enough
		}
	}
	var usages []eviction.Usage
	for _, u := range used {
		usages = append(usages, n.pods.diskOf(u).Usage(u.pod))
	}
	n.evictFor(v1.NodeDiskPressure, eviction.Shortage{Resource: v1.ResourceEphemeralStorage, Threshold: n.cfg.DiskThreshold, Available: free}, usages)
}

func (n *Node) relievePIDs(ctx context.Context) {
	if n.cfg.PIDThreshold <= 0 {
		return
	}
	free, err := n.cfg.FreePIDs()
	if err != nil {
		n.failures.Error(ctx, err, "Cannot tell how many processes the machine could still have")
		return
	}
	var usages []eviction.Usage
	if free < n.cfg.PIDThreshold {
		if usages, err = n.pods.processes(ctx); err != nil {
			n.failures.Error(ctx, err, "Cannot tell how many processes pods have")
		}
	}
	n.evictFor(v1.NodePIDPressure, eviction.Shortage{Resource: eviction.PIDs, Threshold: n.cfg.PIDThreshold, Available: free}, usages)
}

// evictFor tells whether the node is short of a resource, and if it is evicts the pod that has to go first.
func (n *Node) evictFor(condition v1.NodeConditionType, s eviction.Shortage, usages []eviction.Usage) {
	short := s.Available < s.Threshold
	n.notePressure(condition, short)
	if !short {
		return
	}
	if ranked := eviction.Rank(s.Resource, usages); len(ranked) > 0 {
		n.pods.evict(ranked[0].Pod, s.Message(ranked[0]))
	}
}
