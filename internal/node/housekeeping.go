package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/logs"
)

const (
	housekeepingPeriod = 10 * time.Second
	imagePeriod        = 5 * time.Minute
	// evictionGrace is what an evicted pod gets: the node is in need.
	evictionGrace = time.Second
)

// keepHouse looks after memory, disk space, logs and images from time to time.
func (n *Node) keepHouse(ctx context.Context) {
	rotator := logs.Rotator{MaxSize: n.cfg.LogMaxSize, MaxFiles: n.cfg.LogMaxFiles, Runtime: n.cfg.Runtime, Clock: n.cfg.Clock}
	collector := image.Collector{Images: n.cfg.Runtime, Clock: n.cfg.Clock, High: n.cfg.ImageGCHigh, Low: n.cfg.ImageGCLow, Usage: diskUsage}
	ticker := n.cfg.Clock.NewTicker(housekeepingPeriod)
	defer ticker.Stop()
	lastImages := n.cfg.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		n.relieve(ctx, &collector)
		if err := rotator.Rotate(ctx, n.cfg.RootDir); err != nil {
			n.failures.Error(ctx, err, "Cannot rotate logs")
		}
		if n.cfg.ImageGCHigh > 0 && n.cfg.Clock.Since(lastImages) >= imagePeriod {
			lastImages = n.cfg.Clock.Now()
			n.collect(ctx, collector.Collect)
		}
	}
}

// collect removes images that no pod uses, and returns which.
func (n *Node) collect(ctx context.Context, how func(context.Context, map[string]bool) ([]string, error)) []string {
	removed, err := how(ctx, n.pods.imagesInUse())
	if err != nil {
		n.failures.Error(ctx, err, "Cannot free disk space by removing images")
	}
	if len(removed) > 0 {
		klog.FromContext(ctx).Info("Removed images to free disk space", "images", removed)
		n.touch()
	}
	return removed
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
