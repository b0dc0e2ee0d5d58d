package cronjob

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// ended is the last condition of a Job, or "" while it runs.
func ended(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// trimHistory deletes the oldest finished Jobs beyond the history limits.
func (t *turn) trimHistory(ctx context.Context) error {
	for kind, limit := range map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: t.cj.Spec.SuccessfulJobsHistoryLimit, batchv1.JobFailed: t.cj.Spec.FailedJobsHistoryLimit,
	} {
		if limit == nil {
			continue
		}
		var jobs []*batchv1.Job
		for _, job := range t.jobs {
			if ended(job) == kind && job.DeletionTimestamp == nil {
				jobs = append(jobs, job)
			}
		}
		slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
			return cmp.Or(startOf(a).Compare(startOf(b)), cmp.Compare(a.Name, b.Name))
		})
		for _, job := range jobs[:max(0, len(jobs)-int(*limit))] {
			if err := t.deleteJob(ctx, job.Name, job.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

func startOf(job *batchv1.Job) time.Time {
	if job.Status.StartTime != nil {
		return job.Status.StartTime.Time
	}
	return job.CreationTimestamp.Time
}

func (t *turn) deleteJob(ctx context.Context, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := t.c.client.BatchV1().Jobs(t.cj.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(uid))})
	switch {
	case err == nil:
		t.inform("SuccessfulDelete", "Deleted job %v", name)
	case !apierrors.IsNotFound(err):
		t.warn("FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("delete Job %s/%s: %w", t.cj.Namespace, name, err)
	}
	return nil
}

// refreshActive takes Jobs that have ended or are gone out of status.active.
func (t *turn) refreshActive(ctx context.Context) error {
	known := map[types.UID]bool{}
	for _, job := range t.jobs {
		known[job.UID] = true
		t.refresh(job)
	}
	for _, ref := range slices.Clone(t.cj.Status.Active) {
		if known[ref.UID] {
			continue
		}
		// The cache may be behind the Job's creation: only the API server knows.
		job, err := t.c.client.BatchV1().Jobs(t.cj.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if controller.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || job.UID != ref.UID {
			t.inform("MissingJob", "Active job went missing: %v", ref.Name)
			t.deactivate(ref.UID)
		}
	}
	return nil
}

func (t *turn) refresh(job *batchv1.Job) {
	active := t.isActive(job.UID)
	end := ended(job)
	switch {
	case active && end != "":
		t.deactivate(job.UID)
		t.inform("SawCompletedJob", "Saw completed job: %s, condition: %v", job.Name, end)
	case !active && end == "" && job.DeletionTimestamp == nil && !t.madeFor(job):
		t.warn("UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", job.Name)
	}
	if done := job.Status.CompletionTime; end == batchv1.JobComplete && done != nil &&
		(t.cj.Status.LastSuccessfulTime == nil || done.After(t.cj.Status.LastSuccessfulTime.Time)) {
		t.cj.Status.LastSuccessfulTime = done
	}
}

// madeFor takes up a Job of this CronJob whose creation is not in the status because the write after it failed.
func (t *turn) madeFor(job *batchv1.Job) bool {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil || job.Name != jobName(t.cj, at) {
		return false
	}
	if last := t.cj.Status.LastScheduleTime; last == nil || at.After(last.Time) {
		t.started(job, at)
	}
	return true // an earlier one was given up on purpose
}

func (t *turn) started(job *batchv1.Job, at time.Time) {
	t.cj.Status.Active = append(t.cj.Status.Active, corev1.ObjectReference{
		APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion})
	if t.cj.Status.LastScheduleTime == nil || at.After(t.cj.Status.LastScheduleTime.Time) {
		t.cj.Status.LastScheduleTime = ptr.To(metav1.NewTime(at))
	}
}

func (t *turn) isActive(uid types.UID) bool {
	return slices.ContainsFunc(t.cj.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

func (t *turn) deactivate(uid types.UID) {
	t.cj.Status.Active = slices.DeleteFunc(t.cj.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// jobName is made of the scheduled minute.
func jobName(cj *batchv1.CronJob, at time.Time) string {
	return cj.Name + "-" + strconv.FormatInt(at.Unix()/60, 10)
}

// startJob makes the Job of a scheduled time.
func (t *turn) startJob(ctx context.Context, at time.Time, location *time.Location) error {
	template := t.cj.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: jobName(t.cj, at), Namespace: t.cj.Namespace, Labels: template.Labels, Annotations: maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t.cached, gvk)},
		},
		Spec: template.Spec,
	}
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.In(location).Format(time.RFC3339)
	made, err := t.c.client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := t.c.client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if metav1.IsControlledBy(existing, t.cached) {
			if !t.isActive(existing.UID) && ended(existing) == "" {
				t.started(existing, at)
			}
			return nil
		}
	}
	if err != nil {
		if !controller.IsNamespaceTerminating(err) {
			t.warn("FailedCreate", "Error creating job: %v", err)
		}
		return fmt.Errorf("create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	skew.Observe(t.now.Sub(at).Seconds())
	t.inform("SuccessfulCreate", "Created job %v", made.Name)
	t.started(made, at)
	return nil
}
