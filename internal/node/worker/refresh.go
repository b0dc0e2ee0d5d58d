package worker

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
)

// refreshPeriod is how often the content of volumes is brought up to date: ConfigMaps and Secrets may have changed, tokens may be due.
const refreshPeriod = 30 * time.Second

// refresher keeps the content of a running pod's volumes current.
type refresher struct {
	busy bool
	next time.Time
	// seen is the pod of the last refresh: the downward API shows its labels and annotations.
	seen *v1.Pod
}

// refresh starts a refresh when one is due, and returns when the next one is.
func (w *Worker) refresh(ctx context.Context, pod *v1.Pod, stage lifecycle.Stage) time.Time {
	r := &w.refresher
	if stage != lifecycle.StageRunning || r.busy || w.sandbox != nil || !w.observed.Running() || !w.deps.Volumes.Refreshes(pod) {
		return time.Time{}
	}
	now := w.deps.Clock.Now()
	if r.seen == nil { // creating the sandbox has just filled them, or the agent was just started
		r.seen, r.next = pod, now.Add(refreshPeriod)
	}
	if maps.Equal(r.seen.Labels, pod.Labels) && maps.Equal(r.seen.Annotations, pod.Annotations) && now.Before(r.next) {
		return r.next
	}
	r.busy, r.seen = true, pod
	w.ops.Go(func() {
		err := w.deps.Volumes.SetUp(ctx, pod)
		w.report(func(context.Context) {
			r.busy, r.next = false, w.deps.Clock.Now().Add(refreshPeriod)
			if err != nil && ctx.Err() == nil {
				w.event(pod, "", v1.EventTypeWarning, "FailedMount", err.Error())
			}
		})
	})
	return time.Time{}
}
