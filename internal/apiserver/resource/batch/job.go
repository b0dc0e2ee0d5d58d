package batch

import (
	"context"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
)

const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
)

func job() *resource.Kind[*batchv1.Job] {
	return &resource.Kind[*batchv1.Job]{
		Resource:        "jobs",
		Categories:      []string{"all"},
		HasStatus:       true,
		Generation:      true,
		OrphanByDefault: true,
		New:             func() *batchv1.Job { return &batchv1.Job{} },
		NewList:         func() runtime.Object { return &batchv1.JobList{} },
		Default: func(j *batchv1.Job) {
			defaultJobSpec(&j.Spec)
			if len(j.Labels) == 0 {
				j.Labels = maps.Clone(j.Spec.Template.Labels)
			}
		},
		PrepareCreate:  func(_ context.Context, j *batchv1.Job) { generateSelector(j) },
		Validate:       validateJob,
		ValidateUpdate: validateJobUpdate,
		Fields: map[string]func(*batchv1.Job) string{
			"status.successful": func(j *batchv1.Job) string { return resource.Decimal(j.Status.Succeeded) },
		},
		Columns: append([]resource.Column[*batchv1.Job]{
			{Name: "Status", Description: "What the job is doing, or how it ended.", Value: func(j *batchv1.Job) any { return jobStatus(j) }},
			{Name: "Completions", Description: "Pods that succeeded, of those wished.", Value: func(j *batchv1.Job) any { return completionsText(j) }},
			{Name: "Duration", Description: "How long the job has been running, or ran.", Value: func(j *batchv1.Job) any { return durationText(j) }},
			resource.Age[*batchv1.Job](),
		}, templateColumns(func(j *batchv1.Job) *batchv1.JobSpec { return &j.Spec })...),
		Wrap: func(s *resource.Storage) rest.Storage { return &jobStorage{s} },
	}
}

func defaultJobSpec(s *batchv1.JobSpec) {
	podspec.Default(&s.Template.Spec)
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = ptr.To[int32](1)
		s.Parallelism = ptr.To[int32](1)
	}
	if s.Parallelism == nil {
		s.Parallelism = ptr.To[int32](1)
	}
	if s.BackoffLimit == nil {
		s.BackoffLimit = ptr.To[int32](6)
		if s.BackoffLimitPerIndex != nil {
			s.BackoffLimit = ptr.To[int32](1<<31 - 1)
		}
	}
	if s.CompletionMode == nil {
		s.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	}
	if s.Suspend == nil {
		s.Suspend = ptr.To(false)
	}
	if s.ManualSelector == nil {
		s.ManualSelector = ptr.To(false)
	}
	if s.PodReplacementPolicy == nil {
		s.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed)
		if s.PodFailurePolicy != nil {
			s.PodReplacementPolicy = ptr.To(batchv1.Failed)
		}
	}
	if s.PodFailurePolicy != nil {
		for i := range s.PodFailurePolicy.Rules {
			for j := range s.PodFailurePolicy.Rules[i].OnPodConditions {
				if c := &s.PodFailurePolicy.Rules[i].OnPodConditions[j]; c.Status == "" {
					c.Status = corev1.ConditionTrue
				}
			}
		}
	}
}

// generateSelector makes the job's pods known by its UID, unless the user chose the selector.
func generateSelector(j *batchv1.Job) {
	if ptr.Deref(j.Spec.ManualSelector, false) {
		return
	}
	template := &j.Spec.Template
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	for _, key := range []string{batchv1.JobNameLabel, legacyJobName} {
		if _, ok := template.Labels[key]; !ok {
			template.Labels[key] = j.Name
		}
	}
	for _, key := range []string{batchv1.ControllerUidLabel, legacyControllerUID} {
		if _, ok := template.Labels[key]; !ok {
			template.Labels[key] = string(j.UID)
		}
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, ok := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
}

// checkGenerated refuses labels of the template that would make the pods those of another job.
func checkGenerated(uid types.UID, name string, s *batchv1.JobSpec) field.ErrorList {
	if ptr.Deref(s.ManualSelector, false) {
		return nil
	}
	labels := spec.Child("template", "metadata", "labels")
	var errs field.ErrorList
	for key, want := range map[string]string{
		batchv1.JobNameLabel: name, legacyJobName: name, batchv1.ControllerUidLabel: string(uid), legacyControllerUID: string(uid),
	} {
		if s.Template.Labels[key] != want {
			errs = append(errs, field.Invalid(labels.Key(key), s.Template.Labels[key], fmt.Sprintf("must be '%s'", want)))
		}
	}
	return errs
}

func condition(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func jobStatus(j *batchv1.Job) string {
	switch {
	case condition(j, batchv1.JobComplete):
		return "Complete"
	case condition(j, batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case condition(j, batchv1.JobSuspended):
		return "Suspended"
	case condition(j, batchv1.JobFailureTarget):
		return "FailureTarget"
	case condition(j, batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func completionsText(j *batchv1.Job) string {
	switch parallel := ptr.Deref(j.Spec.Parallelism, 0); {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallel > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallel)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

func durationText(j *batchv1.Job) string {
	switch {
	case j.Status.StartTime == nil:
		return ""
	case j.Status.CompletionTime == nil:
		return duration.HumanDuration(time.Since(j.Status.StartTime.Time))
	}
	return duration.HumanDuration(j.Status.CompletionTime.Sub(j.Status.StartTime.Time))
}

// jobStorage warns of a default that surprises.
type jobStorage struct{ *resource.Storage }

// Delete implements rest.GracefulDeleter.
func (s *jobStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if options != nil && options.PropagationPolicy == nil && options.OrphanDependents == nil { //nolint:staticcheck // older clients use the deprecated field
		warning.AddWarning(ctx, "", "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	return s.Storage.Delete(ctx, name, validate, options)
}
