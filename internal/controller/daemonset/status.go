package daemonset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// writeStatus counts nodes and daemons, writes what changed, and asks for a sync when the next ready daemon becomes available.
func (p *plan) writeStatus(ctx context.Context) error {
	s := &p.ds.Status
	s.ObservedGeneration = p.ds.Generation
	s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberMisscheduled = 0, 0, 0
	s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable = 0, 0, 0
	next := time.Duration(0)
	for _, node := range p.nodes {
		pods := p.pods[node.Name]
		if !p.where[node.Name].shouldRun {
			if len(pods) > 0 {
				s.NumberMisscheduled++
			}
			continue
		}
		s.DesiredNumberScheduled++
		if len(pods) > 0 {
			s.CurrentNumberScheduled++
			p.count(pods, &next)
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	if next > 0 {
		p.c.AddAfter(p.key, next)
	}
	if equality.Semantic.DeepEqual(p.ds.Status, p.cached.Status) {
		return nil
	}
	_, err := p.c.client.AppsV1().DaemonSets(p.ds.Namespace).UpdateStatus(ctx, p.ds, metav1.UpdateOptions{})
	return err
}

// count looks at the daemons of one node: it is served if any of them is ready, and updated if any is of the current revision.
func (p *plan) count(pods []*corev1.Pod, next *time.Duration) {
	ready, available, updated := false, false, false
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		updated = updated || p.current(pod)
		left, isReady := controller.PodAvailableIn(pod, p.ds.Spec.MinReadySeconds, p.c.clock.Now())
		ready = ready || isReady
		available = available || (isReady && left == 0)
		if isReady && left > 0 && (*next == 0 || left < *next) {
			*next = left
		}
	}
	for value, counter := range map[*bool]*int32{&ready: &p.ds.Status.NumberReady, &available: &p.ds.Status.NumberAvailable, &updated: &p.ds.Status.UpdatedNumberScheduled} {
		if *value {
			*counter++
		}
	}
}

// writeCollisions keeps the collision count when a revision's name was taken.
func (p *plan) writeCollisions(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.ds.Status.CollisionCount, p.cached.Status.CollisionCount) {
		return nil
	}
	_, err := p.c.client.AppsV1().DaemonSets(p.ds.Namespace).UpdateStatus(ctx, p.ds, metav1.UpdateOptions{})
	return err
}
