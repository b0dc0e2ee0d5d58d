package node

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/eviction"
	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/logs"
	"github.com/bayplan/bayplan/internal/node/translate"
)

const (
	housekeepingPeriod = 10 * time.Second
	imagePeriod        = 5 * time.Minute
	// pressureHeld is for how long a pressure is told after it is over, so that the node doesn't take new pods just to evict them.
	pressureHeld = 5 * time.Minute
	// evictionGrace is what an evicted pod gets: the node is in need.
	evictionGrace = time.Second
)

// keepHouse looks after memory, disk space, logs and images from time to time.
func (n *Node) keepHouse(ctx context.Context) {
	rotator := logs.Rotator{MaxSize: n.cfg.LogMaxSize, MaxFiles: n.cfg.LogMaxFiles, Runtime: n.cfg.Runtime, Clock: n.cfg.Clock}
	collector := image.Collector{Images: n.cfg.Runtime, Clock: n.cfg.Clock, High: n.cfg.ImageGCHigh, Low: n.cfg.ImageGCLow, Usage: diskUsage}
	log := klog.FromContext(ctx)
	ticker := n.cfg.Clock.NewTicker(housekeepingPeriod)
	defer ticker.Stop()
	lastImages := n.cfg.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		n.relieveMemory(ctx)
		n.pods.enforceDisk()
		if err := rotator.Rotate(ctx, n.cfg.RootDir); err != nil {
			n.failures.Error(ctx, err, "Cannot rotate logs")
		}
		if n.cfg.ImageGCHigh > 0 && n.cfg.Clock.Since(lastImages) >= imagePeriod {
			lastImages = n.cfg.Clock.Now()
			removed, err := collector.Collect(ctx, n.pods.imagesInUse())
			if err != nil {
				n.failures.Error(ctx, err, "Cannot free disk space by removing images")
			}
			if len(removed) > 0 {
				log.Info("Removed images to free disk space", "images", removed)
				n.touch()
			}
		}
	}
}

// relieveMemory evicts one pod when memory is short: that of the machine, or what the node may give to pods.
func (n *Node) relieveMemory(ctx context.Context) {
	if n.cfg.MemoryThreshold <= 0 {
		return
	}
	usages, sum, err := n.pods.memoryUsage(ctx)
	if status.Code(err) == codes.Unimplemented {
		return // such a runtime leaves it to the kernel's OOM killer
	}
	if err != nil {
		n.failures.Error(ctx, err, "Cannot tell what pods use")
		return
	}
	available := n.view.Allocatable.Memory().Value() - sum
	if free, err := n.cfg.FreeMemory(); err == nil {
		available = min(available, free)
	}
	short := available < n.cfg.MemoryThreshold
	n.notePressure(short)
	if !short {
		return
	}
	ranked := eviction.Rank(usages)
	if len(ranked) == 0 {
		return
	}
	victim := ranked[0]
	n.pods.evict(victim.Pod, eviction.Message(victim, n.cfg.MemoryThreshold, available))
}

// notePressure keeps the pressure on record until it was over for a while.
func (n *Node) notePressure(short bool) {
	now := n.cfg.Clock.Now()
	n.mu.Lock()
	before := n.pressure
	if short {
		n.pressure, n.pressureSeen = true, now
	} else if n.pressure && now.Sub(n.pressureSeen) >= pressureHeld {
		n.pressure = false
	}
	changed := before != n.pressure
	n.mu.Unlock()
	if changed {
		n.touch()
	}
}

// memoryUsage is what the pods that have not ended use, by container, and in sum.
func (p *pods) memoryUsage(ctx context.Context) ([]eviction.Usage, int64, error) {
	resp, err := p.node.cfg.Runtime.ListContainerStats(ctx, &cri.ListContainerStatsRequest{})
	if err != nil {
		return nil, 0, err
	}
	used := map[types.UID]map[string]int64{}
	sum := int64(0)
	for _, s := range resp.Stats {
		labels := s.GetAttributes().GetLabels()
		uid := types.UID(labels[translate.LabelPodUID])
		if used[uid] == nil {
			used[uid] = map[string]int64{}
		}
		bytes := int64(s.GetMemory().GetWorkingSetBytes().GetValue())
		used[uid][labels[translate.LabelContainerName]] += bytes
		sum += bytes
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []eviction.Usage
	for uid, w := range p.workers {
		if !w.Finished() && used[uid] != nil {
			out = append(out, eviction.Usage{Pod: w.Pod(), Containers: used[uid]})
		}
	}
	return out, sum, nil
}

// evict ends a pod for want of a resource.
func (p *pods) evict(pod *v1.Pod, message string) {
	grace := evictionGrace
	p.mu.Lock()
	w := p.workers[pod.UID]
	p.mu.Unlock()
	if w == nil || w.Ending() {
		return
	}
	p.deps.Recorder.Event(pod, v1.EventTypeWarning, "Evicted", message)
	w.End(lifecycle.Ending{
		Phase: v1.PodFailed, Reason: "Evicted", Message: message, Grace: &grace,
		Condition: &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: message},
	})
}

// enforceDisk evicts pods whose volumes have outgrown their limits.
func (p *pods) enforceDisk() {
	for _, pod := range p.list() {
		message := eviction.OverLimit(pod, func(v *v1.Volume) int64 { return p.node.volumes.Used(pod, v) })
		if message != "" {
			p.evict(pod, message)
		}
	}
}

// imagesInUse are the images of the pods of the node, as the manifests name them and as the runtime does.
func (p *pods) imagesInUse() map[string]bool {
	out := map[string]bool{}
	for _, pod := range p.list() {
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				out[list[i].Image] = true
			}
		}
		for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range list {
				out[list[i].ImageID] = true
			}
		}
	}
	return out
}
