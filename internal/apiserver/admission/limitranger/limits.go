package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	resourcehelper "k8s.io/component-helpers/resource"
)

// subject is what one item of a range is held against: a container, the sum of a pod, or a claim.
type subject struct {
	kind             corev1.LimitType
	requests, limits corev1.ResourceList
	// limitless: the kind of subject has requests only, so that a maximum is one of the request.
	limitless bool
}

func checkPod(r *corev1.LimitRange, pod *corev1.Pod) error {
	var subjects []subject
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			subjects = append(subjects, subject{kind: corev1.LimitTypeContainer, requests: containers[i].Resources.Requests, limits: containers[i].Resources.Limits})
		}
	}
	// What a runtime class adds is not the pod's own.
	own := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	subjects = append(subjects, subject{kind: corev1.LimitTypePod, requests: resourcehelper.PodRequests(pod, own), limits: resourcehelper.PodLimits(pod, own)})
	return check(r, subjects)
}

func checkClaim(r *corev1.LimitRange, claim *corev1.PersistentVolumeClaim) error {
	return check(r, []subject{{kind: corev1.LimitTypePersistentVolumeClaim, requests: claim.Spec.Resources.Requests, limitless: true}})
}

func check(r *corev1.LimitRange, subjects []subject) error {
	var errs []error
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		for _, s := range subjects {
			if s.kind == item.Type {
				errs = append(errs, s.check(item)...)
			}
		}
	}
	return utilerrors.NewAggregate(errs)
}

func (s subject) check(item *corev1.LimitRangeItem) []error {
	var errs []error
	collect := func(bounds corev1.ResourceList, check func(corev1.ResourceName, resource.Quantity) error) {
		for _, name := range slices.Sorted(maps.Keys(bounds)) {
			if err := check(name, bounds[name]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	collect(item.Min, s.atLeast)
	if s.limitless {
		collect(item.Max, s.requestAtMost)
		return errs
	}
	collect(item.Max, s.limitAtMost)
	collect(item.MaxLimitRequestRatio, s.ratioAtMost)
	return errs
}

func (s subject) atLeast(name corev1.ResourceName, bound resource.Quantity) error {
	request, requested := s.requests[name]
	limit, limited := s.limits[name]
	rule := fmt.Sprintf("minimum %s usage per %s is %s", name, s.kind, bound.String())
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", rule)
	case request.Cmp(bound) < 0:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	case limited && limit.Cmp(bound) < 0:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	}
	return nil
}

func (s subject) requestAtMost(name corev1.ResourceName, bound resource.Quantity) error {
	request, requested := s.requests[name]
	rule := fmt.Sprintf("maximum %s usage per %s is %s", name, s.kind, bound.String())
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", rule)
	case request.Cmp(bound) > 0:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	}
	return nil
}

func (s subject) limitAtMost(name corev1.ResourceName, bound resource.Quantity) error {
	request, requested := s.requests[name]
	limit, limited := s.limits[name]
	rule := fmt.Sprintf("maximum %s usage per %s is %s", name, s.kind, bound.String())
	switch {
	case !limited:
		return fmt.Errorf("%s.  No limit is specified", rule)
	case limit.Cmp(bound) > 0:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	case requested && request.Cmp(bound) > 0:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	}
	return nil
}

func (s subject) ratioAtMost(name corev1.ResourceName, bound resource.Quantity) error {
	request, limit := s.requests[name], s.limits[name]
	rule := fmt.Sprintf("%s max limit to request ratio per %s is %s", name, s.kind, bound.String())
	switch {
	case request.IsZero():
		return fmt.Errorf("%s, but no request is specified or request is 0", rule)
	case limit.IsZero():
		return fmt.Errorf("%s, but no limit is specified or limit is 0", rule)
	}
	if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > bound.AsApproximateFloat64() {
		return fmt.Errorf("%s, but provided ratio is %f", rule, ratio)
	}
	return nil
}
