package resourcequota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	library "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/quota"
)

// ignored are resources that are not stored, and Events, which nobody makes by intent.
var ignored = map[schema.GroupResource]struct{}{
	{Resource: "bindings"}:                                                 {},
	{Resource: "componentstatuses"}:                                        {},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             {},
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       {},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      {},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  {},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: {},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   {},
	{Resource: "events"}:                         {},
	{Group: "events.k8s.io", Resource: "events"}: {},
}

// evaluators are those of the resources that use more than their number, and of those whose number quotas know by a name without "count/".
func evaluators(clock clock.PassiveClock) []library.Evaluator {
	all := []library.Evaluator{
		&evaluator[*corev1.Pod]{
			resource: corev1.Resource("pods"), counts: quota.PodResource, fits: quota.PodFits, constraints: podConstraints, handles: handlesPod,
			usage: func(pod *corev1.Pod) corev1.ResourceList { return quota.PodUsage(pod, clock.Now()) },
		},
		&evaluator[*corev1.Service]{
			resource: corev1.Resource("services"), counts: quota.ServiceResource, usage: quota.ServiceUsage, handles: handlesWrites,
		},
		&evaluator[*corev1.PersistentVolumeClaim]{
			resource: corev1.Resource("persistentvolumeclaims"), counts: quota.ClaimResource, usage: quota.ClaimUsage, fits: quota.ClaimFits,
			// The status tells when a claim gets another size or class.
			handles: func(a admission.Attributes) bool { return handlesWrites(a) || a.GetSubresource() == "status" },
		},
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceConfigMaps, corev1.ResourceQuotas, corev1.ResourceReplicationControllers, corev1.ResourceSecrets} {
		all = append(all, generic.NewObjectCountEvaluator(corev1.Resource(string(name)), nil, name))
	}
	return all
}

// handlesWrites: an update can change what the object uses.
func handlesWrites(a admission.Attributes) bool { return a.GetSubresource() == "" }

// handlesPod: what a pod uses does not change by an update, unless it is resized or moves between the scopes Terminating and NotTerminating.
func handlesPod(a admission.Attributes) bool {
	switch a.GetSubresource() {
	case "":
		pod, ok := a.GetObject().(*corev1.Pod)
		old, also := a.GetOldObject().(*corev1.Pod)
		return a.GetOperation() == admission.Create || ok && also && (pod.Spec.ActiveDeadlineSeconds == nil) != (old.Spec.ActiveDeadlineSeconds == nil)
	case "resize":
		return true
	}
	return false
}

// podConstraints: where CPU or memory is limited, each container has to say how much it uses, unless the pod says so as a whole.
func podConstraints(required []corev1.ResourceName, pod *corev1.Pod) error {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	silent := map[corev1.ResourceName][]string{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			used := quota.ContainerUsage(&containers[i])
			for _, name := range required {
				if _, ok := used[name]; !ok && quota.Computes(name) {
					silent[name] = append(silent[name], containers[i].Name)
				}
			}
		}
	}
	if len(silent) == 0 {
		return nil
	}
	var parts []string
	for _, name := range sets.List(sets.KeySet(silent)) {
		slices.Sort(silent[name])
		parts = append(parts, fmt.Sprintf("%s for: %s", name, strings.Join(silent[name], ",")))
	}
	return errors.New("must specify " + strings.Join(parts, "; "))
}

// evaluator gives the library's plugin the rules of one resource, whose objects are of type T.
type evaluator[T runtime.Object] struct {
	resource schema.GroupResource
	usage    func(T) corev1.ResourceList
	counts   func(corev1.ResourceName) bool
	handles  func(admission.Attributes) bool
	// fits tells whether an object is in a scope; without it a quota with scopes does not mean the resource.
	fits        func(corev1.ScopedResourceSelectorRequirement, T) bool
	constraints func(required []corev1.ResourceName, obj T) error
}

// GroupResource implements library.Evaluator.
func (e *evaluator[T]) GroupResource() schema.GroupResource { return e.resource }

// Handles implements library.Evaluator.
func (e *evaluator[T]) Handles(a admission.Attributes) bool { return e.handles(a) }

// Constraints implements library.Evaluator.
func (e *evaluator[T]) Constraints(required []corev1.ResourceName, item runtime.Object) error {
	obj, err := e.object(item)
	if err != nil || e.constraints == nil {
		return err
	}
	return e.constraints(required, obj)
}

// Matches implements library.Evaluator.
func (e *evaluator[T]) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	return generic.Matches(q, item, e.MatchingResources, e.inScope)
}

// MatchingResources implements library.Evaluator.
func (e *evaluator[T]) MatchingResources(names []corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return !e.counts(name) })
}

// MatchingScopes implements library.Evaluator.
func (e *evaluator[T]) MatchingScopes(item runtime.Object, scopes []corev1.ScopedResourceSelectorRequirement) ([]corev1.ScopedResourceSelectorRequirement, error) {
	var matching []corev1.ScopedResourceSelectorRequirement
	for _, scope := range scopes {
		in, err := e.inScope(scope, item)
		if err != nil {
			return nil, err
		}
		if in {
			matching = append(matching, scope)
		}
	}
	return matching, nil
}

// UncoveredQuotaScopes implements library.Evaluator: of the scopes that may be used only under a quota, those without one.
func (e *evaluator[T]) UncoveredQuotaScopes(limited, matched []corev1.ScopedResourceSelectorRequirement) ([]corev1.ScopedResourceSelectorRequirement, error) {
	return slices.DeleteFunc(slices.Clone(limited), func(l corev1.ScopedResourceSelectorRequirement) bool {
		return slices.ContainsFunc(matched, func(m corev1.ScopedResourceSelectorRequirement) bool { return m.ScopeName == l.ScopeName })
	}), nil
}

// Usage implements library.Evaluator.
func (e *evaluator[T]) Usage(item runtime.Object) (corev1.ResourceList, error) {
	obj, err := e.object(item)
	if err != nil {
		return nil, err
	}
	return e.usage(obj), nil
}

// UsageStats implements library.Evaluator. Admission adds to what is used and never counts a namespace; the quota controller does that.
func (e *evaluator[T]) UsageStats(library.UsageStatsOptions) (library.UsageStats, error) {
	return library.UsageStats{}, fmt.Errorf("admission does not count the %s of a namespace", e.resource)
}

func (e *evaluator[T]) inScope(scope corev1.ScopedResourceSelectorRequirement, item runtime.Object) (bool, error) {
	obj, err := e.object(item)
	return err == nil && e.fits != nil && e.fits(scope, obj), err
}

func (e *evaluator[T]) object(item runtime.Object) (T, error) {
	obj, ok := item.(T)
	if !ok {
		return obj, fmt.Errorf("a %T is not one of %s", item, e.resource)
	}
	return obj, nil
}
