package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Bounds of jobs whose pods have indexes: what is recorded of each must fit into one object.
const (
	maxIndexedParallelism = 100000
	maxFailureRules       = 20
	maxExitCodes          = 255
	maxSuccessRules       = 20
)

func validateJob(j *batchv1.Job) field.ErrorList {
	errs := checkGenerated(j.UID, j.Name, &j.Spec)
	errs = append(errs, validateJobSpec(&j.Spec, spec)...)
	if j.Spec.Selector == nil {
		return append(errs, field.Required(spec.Child("selector"), ""))
	}
	return append(errs, rules.Selector(j.Spec.Selector, spec.Child("selector"))...)
}

// validateJobSpec also checks the template of a CronJob, which has no selector yet.
func validateJobSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]*int32{
		"parallelism": s.Parallelism, "completions": s.Completions, "backoffLimit": s.BackoffLimit, "ttlSecondsAfterFinished": s.TTLSecondsAfterFinished,
		"backoffLimitPerIndex": s.BackoffLimitPerIndex, "maxFailedIndexes": s.MaxFailedIndexes,
	} {
		errs = append(errs, rules.NotNegativePointer(value, path.Child(name))...)
	}
	errs = append(errs, rules.NotNegativePointer(s.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, rules.OneOfPointer(s.CompletionMode, path.Child("completionMode"), batchv1.IndexedCompletion, batchv1.NonIndexedCompletion)...)
	errs = append(errs, validateIndexed(s, path)...)
	errs = append(errs, validateFailurePolicy(s, path.Child("podFailurePolicy"))...)
	errs = append(errs, validateSuccessPolicy(s, path.Child("successPolicy"))...)
	errs = append(errs, rules.OneOfPointer(s.PodReplacementPolicy, path.Child("podReplacementPolicy"), batchv1.Failed, batchv1.TerminatingOrFailed)...)
	if s.PodFailurePolicy != nil && ptr.Deref(s.PodReplacementPolicy, batchv1.Failed) != batchv1.Failed {
		errs = append(errs, field.NotSupported(path.Child("podReplacementPolicy"), *s.PodReplacementPolicy, []batchv1.PodReplacementPolicy{batchv1.Failed}))
	}
	if s.ManagedBy != nil {
		errs = append(errs, rules.Qualified(*s.ManagedBy, path.Child("managedBy"))...)
	}
	template := path.Child("template")
	errs = append(errs, podspec.ValidateTemplate(&s.Template, s.Selector, template)...)
	restart := s.Template.Spec.RestartPolicy
	if restart != corev1.RestartPolicyOnFailure && restart != corev1.RestartPolicyNever {
		errs = append(errs, field.Required(template.Child("spec", "restartPolicy"), fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	}
	if s.PodFailurePolicy != nil && restart != corev1.RestartPolicyNever {
		errs = append(errs, field.Invalid(template.Child("spec", "restartPolicy"), restart, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", corev1.RestartPolicyNever)))
	}
	return errs
}

func validateIndexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ptr.Deref(s.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		if s.BackoffLimitPerIndex != nil {
			errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, "requires indexed completion mode"))
		}
		if s.MaxFailedIndexes != nil {
			errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
		}
		return errs
	}
	if s.Completions == nil {
		errs = append(errs, field.Required(path.Child("completions"), fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion)))
	}
	if p := ptr.Deref(s.Parallelism, 0); p > maxIndexedParallelism {
		errs = append(errs, field.Invalid(path.Child("parallelism"), p, fmt.Sprintf("must be less than or equal to %d when completion mode is %s", maxIndexedParallelism, batchv1.IndexedCompletion)))
	}
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if s.MaxFailedIndexes != nil && s.Completions != nil && *s.MaxFailedIndexes > *s.Completions {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *s.MaxFailedIndexes, "must be less than or equal to completions"))
	}
	return errs
}

func validateFailurePolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.PodFailurePolicy == nil {
		return nil
	}
	errs := rules.AtMost(s.PodFailurePolicy.Rules, maxFailureRules, path.Child("rules"))
	for i := range s.PodFailurePolicy.Rules {
		errs = append(errs, validateFailureRule(s, &s.PodFailurePolicy.Rules[i], path.Child("rules").Index(i))...)
	}
	return errs
}

func validateFailureRule(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, path *field.Path) field.ErrorList {
	errs := rules.OneOf(r.Action, path.Child("action"), batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)
	if r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(path.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set"))
	}
	switch {
	case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
		return append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
		return append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	case r.OnExitCodes == nil:
		for i, c := range r.OnPodConditions {
			p := path.Child("onPodConditions").Index(i)
			errs = append(errs, rules.Qualified(string(c.Type), p.Child("type"))...)
			errs = append(errs, rules.OneOf(c.Status, p.Child("status"), corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
		}
		return errs
	}
	codes := path.Child("onExitCodes")
	errs = append(errs, rules.OneOf(r.OnExitCodes.Operator, codes.Child("operator"), batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)...)
	if name := r.OnExitCodes.ContainerName; name != nil && !hasContainer(&s.Template.Spec, *name) {
		errs = append(errs, field.Invalid(codes.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
	}
	values := codes.Child("values")
	if len(r.OnExitCodes.Values) == 0 {
		errs = append(errs, field.Invalid(values, r.OnExitCodes.Values, "at least one value is required"))
	}
	errs = append(errs, rules.AtMost(r.OnExitCodes.Values, maxExitCodes, values)...)
	for i, code := range r.OnExitCodes.Values {
		switch {
		case code == 0 && r.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn:
			errs = append(errs, field.Invalid(values.Index(i), code, "must not be 0 for the In operator"))
		case slices.Index(r.OnExitCodes.Values, code) < i:
			errs = append(errs, field.Duplicate(values.Index(i), code))
		case i > 0 && r.OnExitCodes.Values[i-1] > code:
			return append(errs, field.Invalid(values, r.OnExitCodes.Values, "must be ordered"))
		}
	}
	return errs
}

func hasContainer(s *corev1.PodSpec, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(s.Containers, is) || slices.ContainsFunc(s.InitContainers, is)
}

func validateSuccessPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.SuccessPolicy == nil {
		return nil
	}
	if ptr.Deref(s.CompletionMode, "") != batchv1.IndexedCompletion {
		return field.ErrorList{field.Invalid(path, *s.SuccessPolicy, "requires indexed completion mode")}
	}
	list := path.Child("rules")
	if len(s.SuccessPolicy.Rules) == 0 {
		return field.ErrorList{field.Required(list, "at least one rules must be specified when the successPolicy is specified")}
	}
	errs := rules.AtMost(s.SuccessPolicy.Rules, maxSuccessRules, list)
	for i, r := range s.SuccessPolicy.Rules {
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			errs = append(errs, field.Required(list.Index(i), "at least one of succeededCount or succeededIndexes must be specified"))
		}
		if r.SucceededCount != nil {
			errs = append(errs, rules.Positive(*r.SucceededCount, list.Index(i).Child("succeededCount"))...)
		}
	}
	return errs
}

func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(&j.Spec, spec)
	errs = append(errs, validateCompletionsUpdate(&j.Spec, &old.Spec)...)
	errs = append(errs, rules.Unchanged(j.Spec.Selector, old.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, validateTemplateUpdate(j, old)...)
	for name, pair := range map[string][2]any{
		"completionMode": {j.Spec.CompletionMode, old.Spec.CompletionMode}, "podFailurePolicy": {j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy},
		"backoffLimitPerIndex": {j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex}, "managedBy": {j.Spec.ManagedBy, old.Spec.ManagedBy},
		"successPolicy": {j.Spec.SuccessPolicy, old.Spec.SuccessPolicy},
	} {
		errs = append(errs, rules.Unchanged(pair[0], pair[1], spec.Child(name))...)
	}
	return errs
}

// validateCompletionsUpdate lets an indexed job grow or shrink with its parallelism.
func validateCompletionsUpdate(s, old *batchv1.JobSpec) field.ErrorList {
	if equality.Semantic.DeepEqual(s.Completions, old.Completions) {
		return nil
	}
	path := spec.Child("completions")
	if ptr.Deref(s.CompletionMode, "") != batchv1.IndexedCompletion || s.Completions == nil || old.Completions == nil {
		return rules.Unchanged(s.Completions, old.Completions, path)
	}
	if ptr.Deref(s.Parallelism, 0) != *s.Completions {
		return field.ErrorList{field.Invalid(path, *s.Completions, fmt.Sprintf("can only be modified in tandem with %s", spec.Child("parallelism")))}
	}
	return nil
}

// validateTemplateUpdate lets the scheduling directives change while a suspended job has not started, so that a queue can place it.
func validateTemplateUpdate(j, old *batchv1.Job) field.ErrorList {
	template := *old.Spec.Template.DeepCopy()
	if ptr.Deref(old.Spec.Suspend, false) && old.Status.StartTime == nil {
		from := &j.Spec.Template
		template.Labels, template.Annotations = from.Labels, from.Annotations
		template.Spec.NodeSelector, template.Spec.Tolerations = from.Spec.NodeSelector, from.Spec.Tolerations
		template.Spec.SchedulingGates = from.Spec.SchedulingGates
		if template.Spec.Affinity == nil {
			template.Spec.Affinity = from.Spec.Affinity
		} else if from.Spec.Affinity != nil {
			template.Spec.Affinity.NodeAffinity = from.Spec.Affinity.NodeAffinity
		}
	}
	return rules.Unchanged(j.Spec.Template, template, spec.Child("template"))
}
