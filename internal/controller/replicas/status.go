package replicas

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bayplan/bayplan/internal/controller"
)

// report writes the status if it differs, and asks for a sync when the next ready pod becomes available.
func (c *Controller) report(ctx context.Context, key string, set *Set, pods []*corev1.Pod, failure error) error {
	status, next := c.status(set, pods, failure)
	if next > 0 {
		c.AddAfter(key, next)
	}
	if equality.Semantic.DeepEqual(status, set.Status) {
		return nil
	}
	return c.kind.WriteStatus(ctx, set, status)
}

func (c *Controller) status(set *Set, pods []*corev1.Pod, failure error) (status Status, next time.Duration) {
	now := c.clock.Now()
	template := labels.Set(set.Template.Labels).AsSelectorPreValidated()
	var terminating int32
	for _, pod := range pods {
		if controller.IsPodTerminating(pod) {
			terminating++
		}
		if !controller.IsPodActive(pod) {
			continue
		}
		status.Replicas++
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeled++
		}
		left, ready := controller.PodAvailableIn(pod, set.MinReadySeconds, now)
		switch {
		case !ready:
			continue
		case left == 0:
			status.Available++
		case next == 0 || left < next:
			next = left
		}
		status.Ready++
	}
	if set.CountsTerminating {
		status.Terminating = &terminating
	}
	status.ObservedGeneration = set.Object.GetGeneration()
	status.Failure = c.failure(set, failure, int(set.Replicas)-int(status.Replicas))
	return status, next
}

// failure is the condition ReplicaFailure. One that is there already stays as it is while the failure lasts, so that its message and time do
// not change at every attempt.
func (c *Controller) failure(set *Set, err error, missing int) *Failure {
	if err == nil {
		if settled, _ := c.expectations.Satisfied(keyOf(set.Object)); !settled {
			return set.Status.Failure
		}
		return nil
	}
	if set.Status.Failure != nil {
		return set.Status.Failure
	}
	reason := controller.ReasonFailedCreate
	if missing < 0 {
		reason = controller.ReasonFailedDelete
	}
	return &Failure{Reason: reason, Message: err.Error(), Since: c.clock.Now().Truncate(time.Second)}
}
