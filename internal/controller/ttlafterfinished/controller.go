// Package ttlafterfinished deletes finished Jobs when spec.ttlSecondsAfterFinished has passed. Job events lead to a sync of the Job, which deletes
// it or asks for another sync when it is time.
package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "ttl-after-finished-controller"

var delay = controller.Histogram("ttl_after_finished_controller", "job_deletion_duration_seconds", "Time from when a finished Job could be deleted to its deletion.",
	[]float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2})

// Controller deletes finished Jobs.
type Controller struct {
	*controller.Loop
	client kubernetes.Interface
	clock  clock.PassiveClock
	jobs   batchlisters.JobLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	jobs := deps.Informers.Batch().V1().Jobs()
	c := &Controller{client: deps.Client, clock: deps.Clock, jobs: jobs.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	changed := func(job *batchv1.Job) {
		if _, due := dueAt(job); due {
			c.AddObject(job)
		}
	}
	return c, c.Handle(jobs.Informer(), controller.Handlers[*batchv1.Job]{Add: changed, Update: func(_, job *batchv1.Job) { changed(job) }})
}

// dueAt is when the Job may be deleted, if it is finished and has a time to live.
func dueAt(job *batchv1.Job) (time.Time, bool) {
	if job.Spec.TTLSecondsAfterFinished == nil || job.DeletionTimestamp != nil {
		return time.Time{}, false
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
		}
	}
	return time.Time{}, false
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	job, err := c.jobs.Jobs(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if wait, due := c.left(job); !due || wait > 0 {
		if due {
			c.AddAfter(key, wait)
		}
		return nil
	}
	// The time to live may have been prolonged since: what counts is the Job as it is now.
	fresh, err := c.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if wait, due := c.left(fresh); fresh.UID != job.UID || !due || wait > 0 {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	err = c.client.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{
		PropagationPolicy: &foreground,
		Preconditions:     &metav1.Preconditions{UID: &fresh.UID, ResourceVersion: &fresh.ResourceVersion},
	})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete finished Job %s: %w", key, err)
	}
	if at, due := dueAt(fresh); due {
		delay.Observe(c.clock.Since(at).Seconds())
	}
	return nil
}

func (c *Controller) left(job *batchv1.Job) (time.Duration, bool) {
	at, due := dueAt(job)
	return at.Sub(c.clock.Now()), due
}
