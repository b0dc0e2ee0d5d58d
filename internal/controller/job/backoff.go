package job

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// backoff is what delays the next pod of a Job: how many pods failed since the last success, and when the last one did. It is not stored:
// after a restart the first replacement comes at once.
type backoff struct {
	failures int
	last     time.Time
	seen     sets.Set[types.UID]
}

// recordBackoff brings the record of a Job up to date with its newly finished pods.
func (c *Controller) recordBackoff(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.backoffs[a.key]
	if b == nil {
		b = &backoff{seen: sets.New[types.UID]()}
		c.backoffs[a.key] = b
	}
	failed := sets.New[types.UID]()
	for _, pod := range a.newFailed {
		failed.Insert(pod.UID)
	}
	finished := append(slices.Clone(a.newFailed), a.newSucceeded...)
	slices.SortStableFunc(finished, func(x, y *corev1.Pod) int { return finishTime(x, a.now).Compare(finishTime(y, a.now)) })
	seen := sets.New[types.UID]()
	for _, pod := range finished {
		seen.Insert(pod.UID)
		switch {
		case b.seen.Has(pod.UID) || a.ignored.Has(pod.UID):
		case failed.Has(pod.UID):
			b.failures++
			b.last = finishTime(pod, a.now)
		default:
			b.failures = 0
		}
	}
	b.seen = seen
}

// backoffLeft is how long the next pod must wait.
func (c *Controller) backoffLeft(key string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.backoffs[key]
	if b == nil || b.failures == 0 {
		return 0
	}
	return max(0, b.last.Add(backoffDelay(b.failures)).Sub(now))
}

func (c *Controller) forgetBackoff(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.backoffs, key)
}

// finishTime is when the last container of the pod ended, or the best that is known of it.
func finishTime(pod *corev1.Pod, now time.Time) time.Time {
	var last time.Time
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated == nil {
			last = time.Time{}
			break
		}
		if at := s.State.Terminated.FinishedAt.Time; at.After(last) {
			last = at
		}
	}
	if !last.IsZero() {
		return last
	}
	if pod.DeletionTimestamp != nil {
		return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime.Time
		}
	}
	return now
}
