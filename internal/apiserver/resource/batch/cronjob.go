package batch

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// maxCronJobName leaves room for the "-" and the ten digits that jobs have after the name.
const maxCronJobName = utilvalidation.DNS1035LabelMaxLength - 11

func cronJob() *resource.Kind[*batchv1.CronJob] {
	return &resource.Kind[*batchv1.CronJob]{
		Resource:       "cronjobs",
		ShortNames:     []string{"cj"},
		Categories:     []string{"all"},
		HasStatus:      true,
		Generation:     true,
		New:            func() *batchv1.CronJob { return &batchv1.CronJob{} },
		NewList:        func() runtime.Object { return &batchv1.CronJobList{} },
		Default:        defaultCronJob,
		Validate:       validateCronJob,
		ValidateUpdate: func(c, _ *batchv1.CronJob) field.ErrorList { return validateCronSpec(&c.Spec) },
		Columns: append([]resource.Column[*batchv1.CronJob]{
			{Name: "Schedule", Description: "When jobs are started.", Value: func(c *batchv1.CronJob) any { return c.Spec.Schedule }},
			{Name: "Timezone", Description: "Time zone of the schedule.", Value: func(c *batchv1.CronJob) any { return ptr.Deref(c.Spec.TimeZone, resource.None) }},
			{Name: "Suspend", Type: "boolean", Description: "Whether no jobs are started for now.", Value: func(c *batchv1.CronJob) any {
				return suspendText(c.Spec.Suspend)
			}},
			{Name: "Active", Type: "integer", Description: "Jobs that run.", Value: func(c *batchv1.CronJob) any { return int64(len(c.Status.Active)) }},
			{Name: "Last Schedule", Description: "Time since a job was started last.", Value: func(c *batchv1.CronJob) any {
				if c.Status.LastScheduleTime == nil {
					return resource.None
				}
				return resource.Since(*c.Status.LastScheduleTime)
			}},
			resource.Age[*batchv1.CronJob](),
		}, templateColumns(func(c *batchv1.CronJob) *batchv1.JobSpec { return &c.Spec.JobTemplate.Spec })...),
	}
}

// suspendText is written out by kubectl with a capital, as the printer of CronJobs has always done.
func suspendText(b *bool) string {
	if b == nil {
		return "<unset>"
	}
	if *b {
		return "True"
	}
	return "False"
}

func defaultCronJob(c *batchv1.CronJob) {
	s := &c.Spec
	// The rest of the job's defaults are filled in when a job is made of the template.
	podspec.Default(&s.JobTemplate.Spec.Template.Spec)
	if s.ConcurrencyPolicy == "" {
		s.ConcurrencyPolicy = batchv1.AllowConcurrent
	}
	if s.Suspend == nil {
		s.Suspend = ptr.To(false)
	}
	if s.SuccessfulJobsHistoryLimit == nil {
		s.SuccessfulJobsHistoryLimit = ptr.To[int32](3)
	}
	if s.FailedJobsHistoryLimit == nil {
		s.FailedJobsHistoryLimit = ptr.To[int32](1)
	}
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	errs := validateCronSpec(&c.Spec)
	if len(c.Name) > maxCronJobName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, fmt.Sprintf("must be no more than %d characters", maxCronJobName)))
	}
	return errs
}

func validateCronSpec(s *batchv1.CronJobSpec) field.ErrorList {
	var errs field.ErrorList
	if s.Schedule == "" {
		errs = append(errs, field.Required(spec.Child("schedule"), ""))
	} else {
		errs = append(errs, validateSchedule(s, spec.Child("schedule"))...)
	}
	errs = append(errs, validateTimeZone(s.TimeZone, spec.Child("timeZone"))...)
	errs = append(errs, rules.NotNegativePointer(s.StartingDeadlineSeconds, spec.Child("startingDeadlineSeconds"))...)
	errs = append(errs, rules.OneOf(s.ConcurrencyPolicy, spec.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, rules.NotNegativePointer(s.SuccessfulJobsHistoryLimit, spec.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, rules.NotNegativePointer(s.FailedJobsHistoryLimit, spec.Child("failedJobsHistoryLimit"))...)
	template := spec.Child("jobTemplate", "spec")
	if ptr.Deref(s.JobTemplate.Spec.ManualSelector, false) {
		errs = append(errs, field.NotSupported(template.Child("manualSelector"), true, []string{"nil", "false"}))
	}
	if s.JobTemplate.Spec.Selector != nil {
		errs = append(errs, field.Invalid(template.Child("selector"), s.JobTemplate.Spec.Selector, "`selector` will be auto-generated"))
		return errs
	}
	return append(errs, validateJobSpec(&s.JobTemplate.Spec, template)...)
}

func validateSchedule(s *batchv1.CronJobSpec, path *field.Path) field.ErrorList {
	if err := checkSchedule(s.Schedule); err != nil {
		return field.ErrorList{field.Invalid(path, s.Schedule, err.Error())}
	}
	if s.TimeZone != nil && strings.Contains(s.Schedule, "TZ") {
		return field.ErrorList{field.Invalid(path, s.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")}
	}
	if strings.Contains(s.Schedule, "TZ") {
		return field.ErrorList{field.Invalid(path, s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")}
	}
	return nil
}

func validateTimeZone(zone *string, path *field.Path) field.ErrorList {
	if zone == nil {
		return nil
	}
	if *zone == "" {
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be nil or non-empty string")}
	}
	if strings.EqualFold(*zone, "Local") {
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")}
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		return field.ErrorList{field.Invalid(path, *zone, err.Error())}
	}
	return nil
}
