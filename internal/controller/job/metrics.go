package job

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

var (
	jobsFinished = controller.Counter("job_controller", "jobs_finished_total", "Jobs that have finished.", "completion_mode", "result", "reason")
	podsFinished = controller.Counter("job_controller", "job_pods_finished_total", "Finished pods that have been counted for their Job.", "completion_mode", "result")
)

const (
	succeeded = "succeeded"
	failed    = "failed"
)

// measure counts what the status that was just written says and the one before did not.
func (a *attempt) measure() {
	mode := string(ptr.Deref(a.job.Spec.CompletionMode, batchv1.NonIndexedCompletion))
	before, after := a.cached.Status, a.job.Status
	// Indexed Jobs count indexes, which a new template or size can take back.
	podsFinished.WithLabelValues(mode, succeeded).Add(float64(max(0, after.Succeeded-before.Succeeded)))
	podsFinished.WithLabelValues(mode, failed).Add(float64(max(0, after.Failed-before.Failed)))
	switch {
	case isOver(a.cached):
	case isTrue(a.job, batchv1.JobComplete):
		jobsFinished.WithLabelValues(mode, succeeded, condition(a.job, batchv1.JobComplete).Reason).Inc()
	case isTrue(a.job, batchv1.JobFailed):
		jobsFinished.WithLabelValues(mode, failed, condition(a.job, batchv1.JobFailed).Reason).Inc()
	}
}
