// Package cronjob makes Jobs by a schedule.
//
// A sync reads the CronJob and its Jobs from the caches, brings status.active up to date, deletes finished Jobs beyond the history limits, makes the Job of the
// latest time that is due, and asks for the next sync at the next time. A Job's name is made of the time, so that no time can be started
// twice. See README.md for the rules.
package cronjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs, metrics and events.
const Name = "cronjob-controller"

var gvk = batchv1.SchemeGroupVersion.WithKind("CronJob")

// Controller makes Jobs by schedules.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	recorder record.EventRecorder
	clock    clock.PassiveClock
	fresh    *controller.Freshness
	cronJobs batchlisters.CronJobLister
	jobIndex cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	batch := deps.Informers.Batch().V1()
	if err := controller.IndexByOwner(batch.Jobs().Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder(Name), clock: deps.Clock, fresh: controller.NewFreshness(),
		cronJobs: batch.CronJobs().Lister(), jobIndex: batch.Jobs().Informer().GetIndexer(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(batch.CronJobs().Informer(), controller.Handlers[*batchv1.CronJob]{
		Add:    func(cj *batchv1.CronJob) { c.AddObject(cj) },
		Update: func(_, cj *batchv1.CronJob) { c.AddObject(cj) },
		Delete: func(cj *batchv1.CronJob) { c.fresh.Forget(cj.UID) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(batch.Jobs().Informer(), controller.OnAny(func(job *batchv1.Job) {
		if ref := metav1.GetControllerOfNoCopy(job); ref != nil && ref.Kind == gvk.Kind {
			c.Add(job.Namespace + "/" + ref.Name)
		}
	}))
}

// turn is one sync of one CronJob.
type turn struct {
	c      *Controller
	key    string
	cached *batchv1.CronJob
	cj     *batchv1.CronJob // a copy whose status is changed and then written
	now    time.Time
	jobs   []*batchv1.Job
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	cached, err := c.cronJobs.CronJobs(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if c.fresh.Stale(cached) {
		return nil // the event of our own write is on its way and brings us back
	}
	t := &turn{c: c, key: key, cached: cached, cj: cached.DeepCopy(), now: c.clock.Now(), jobs: controller.Owned[*batchv1.Job](c.jobIndex, cached.UID)}
	err = t.trimHistory(ctx)
	if err == nil {
		err = t.refreshActive(ctx)
	}
	if err == nil && t.cj.DeletionTimestamp == nil && (t.cj.Spec.Suspend == nil || !*t.cj.Spec.Suspend) {
		err = t.run(ctx)
	}
	if writeErr := t.writeStatus(ctx); writeErr != nil {
		return writeErr
	}
	if err != nil && controller.IsNamespaceTerminating(err) {
		return nil
	}
	return err
}

func (t *turn) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(t.cj.Status, t.cached.Status) {
		return nil
	}
	written, err := t.c.client.BatchV1().CronJobs(t.cj.Namespace).UpdateStatus(ctx, t.cj, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the status of CronJob %s: %w", t.key, err)
	}
	t.c.fresh.Wrote(written)
	return nil
}

func (t *turn) event(kind, reason, format string, args ...any) {
	t.c.recorder.Eventf(t.cached, kind, reason, format, args...)
}

func (t *turn) warn(reason, format string, args ...any) {
	t.event(corev1.EventTypeWarning, reason, format, args...)
}

func (t *turn) inform(reason, format string, args ...any) {
	t.event(corev1.EventTypeNormal, reason, format, args...)
}
