package job

import (
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// verdict is that the Job is over, and why.
type verdict struct {
	success         bool
	reason, message string
}

func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	c := condition(job, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// isOver tells whether the Job has its last condition.
func isOver(job *batchv1.Job) bool {
	return isTrue(job, batchv1.JobComplete) || isTrue(job, batchv1.JobFailed)
}

// setCondition sets a condition unless it already has the status and the reason.
func (a *attempt) setCondition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) bool {
	now := metav1.NewTime(a.now)
	next := batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now}
	i := slices.IndexFunc(a.job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
	if i < 0 {
		a.job.Status.Conditions = append(a.job.Status.Conditions, next)
		return true
	}
	if old := a.job.Status.Conditions[i]; old.Status == status && old.Reason == reason {
		return false
	}
	a.job.Status.Conditions[i] = next
	return true
}

// decide finds out whether the Job is over: earlier, by its policies, its limits or its deadline.
func (a *attempt) decide() {
	if c := condition(a.job, batchv1.JobFailureTarget); c != nil && c.Status == corev1.ConditionTrue {
		a.verdict = &verdict{false, c.Reason, c.Message}
		return
	}
	if c := condition(a.job, batchv1.JobSuccessCriteriaMet); c != nil && c.Status == corev1.ConditionTrue {
		a.verdict = &verdict{true, c.Reason, c.Message}
		return
	}
	for _, rule := range []func() *verdict{a.bySuccessPolicy, a.byFailurePolicy, a.byBackoffLimit, a.byDeadline, a.byFailedIndexes} {
		if a.verdict = rule(); a.verdict != nil {
			return
		}
	}
}

func (a *attempt) byBackoffLimit() *verdict {
	limit := int(ptr.Deref(a.job.Spec.BackoffLimit, 6))
	over := a.failures() > limit && (len(a.newFailed) > 0 || a.failures() > int(a.cached.Status.Failed))
	if a.job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		over = over || a.restartsBeyond(limit)
	}
	if over || (a.failures() > limit && a.perIndexLimit() == nil) {
		return &verdict{false, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"}
	}
	return nil
}

// restartsBeyond counts the restarts of containers, where failures do not end the pod.
func (a *attempt) restartsBeyond(limit int) bool {
	restarts := 0
	for _, pod := range a.active {
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range statuses {
				restarts += int(statuses[i].RestartCount)
			}
		}
	}
	if limit == 0 {
		return restarts > 0
	}
	return restarts >= limit
}

// byDeadline ends the Job after activeDeadlineSeconds, or asks for a sync at that time.
func (a *attempt) byDeadline() *verdict {
	if a.job.Spec.ActiveDeadlineSeconds == nil || a.job.Status.StartTime == nil || isSuspended(a.job) {
		return nil
	}
	left := time.Duration(*a.job.Spec.ActiveDeadlineSeconds)*time.Second - a.now.Sub(a.job.Status.StartTime.Time)
	if left <= 0 {
		return &verdict{false, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"}
	}
	a.c.AddAfter(a.key, left)
	return nil
}

// byFailedIndexes ends a Job with a limit per index when too many indexes failed, or when none is left to try.
func (a *attempt) byFailedIndexes() *verdict {
	if a.perIndexLimit() == nil {
		return nil
	}
	if most := a.job.Spec.MaxFailedIndexes; most != nil && a.failedIndexes.count() > int(*most) {
		return &verdict{false, batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"}
	}
	if a.failedIndexes.count() > 0 && a.failedIndexes.count()+a.completed.count() >= completionsOf(a.job) {
		return &verdict{false, batchv1.JobReasonFailedIndexes, "Job has failed indexes"}
	}
	return nil
}

func (a *attempt) perIndexLimit() *int32 {
	if !isIndexed(a.job) {
		return nil
	}
	return a.job.Spec.BackoffLimitPerIndex
}

// judgeCompletion finds out whether enough pods have succeeded.
func (a *attempt) judgeCompletion() {
	complete := false
	switch {
	case a.job.Spec.Completions == nil:
		// A work queue: the first success means that the work is done, the others finish what they have.
		complete = a.succeeded() > 0 && len(a.active) == 0
	default:
		complete = a.succeeded() >= completionsOf(a.job) && len(a.active) == 0
	}
	if complete {
		a.verdict = &verdict{true, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"}
	}
}

// noteSuspension keeps the condition Suspended. Resuming starts the clock of the deadline anew.
func (a *attempt) noteSuspension() {
	if isSuspended(a.job) {
		if a.setCondition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended") {
			a.c.recorder.Event(a.cached, corev1.EventTypeNormal, "Suspended", "Job suspended")
			a.job.Status.StartTime = nil
		}
		return
	}
	if !isTrue(a.job, batchv1.JobSuspended) {
		return
	}
	a.setCondition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
	a.c.recorder.Event(a.cached, corev1.EventTypeNormal, "Resumed", "Job resumed")
	a.job.Status.StartTime = ptr.To(metav1.NewTime(a.now))
	if seconds := a.job.Spec.ActiveDeadlineSeconds; seconds != nil {
		a.c.AddAfter(a.key, time.Duration(*seconds)*time.Second)
	}
}

// conclude writes the verdict into the conditions: first that the end is decided, and when all pods have ended and are counted, the end itself.
func (a *attempt) conclude() {
	v := a.verdict
	if v == nil {
		return
	}
	intent, final := batchv1.JobFailureTarget, batchv1.JobFailed
	if v.success {
		intent, final = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	}
	a.setCondition(intent, corev1.ConditionTrue, v.reason, v.message)
	u := a.job.Status.UncountedTerminatedPods
	if len(a.active) > 0 || a.terminating > 0 || (u != nil && len(u.Succeeded)+len(u.Failed) > 0) {
		return
	}
	a.setCondition(final, corev1.ConditionTrue, v.reason, v.message)
	if v.success {
		a.job.Status.CompletionTime = ptr.To(metav1.NewTime(a.now))
		a.c.recorder.Event(a.cached, corev1.EventTypeNormal, "Completed", "Job completed")
	} else {
		a.c.recorder.Event(a.cached, corev1.EventTypeWarning, v.reason, v.message)
	}
	a.c.forgetBackoff(a.key)
}

// Delays before a failed pod is replaced: 10 s doubling up to 10 min.
const (
	backoffBase = 10 * time.Second
	backoffMax  = 10 * time.Minute
)

func backoffDelay(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	return time.Duration(min(float64(backoffBase)*math.Pow(2, float64(failures-1)), float64(backoffMax)))
}
