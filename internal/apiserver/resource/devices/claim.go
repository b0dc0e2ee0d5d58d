package devices

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func resourceClaim() *resource.Kind[*resourcev1.ResourceClaim] {
	return &resource.Kind[*resourcev1.ResourceClaim]{
		Resource:  "resourceclaims",
		HasStatus: true,
		New:       func() *resourcev1.ResourceClaim { return &resourcev1.ResourceClaim{} },
		NewList:   func() runtime.Object { return &resourcev1.ResourceClaimList{} },
		Default:   func(c *resourcev1.ResourceClaim) { defaultClaim(&c.Spec) },
		Validate:  func(c *resourcev1.ResourceClaim) field.ErrorList { return validateClaim(&c.Spec, spec) },
		ValidateUpdate: func(c, old *resourcev1.ResourceClaim) field.ErrorList {
			return rules.Unchanged(c.Spec, old.Spec, spec)
		},
		ValidateStatus: validateClaimStatus,
		Columns: []resource.Column[*resourcev1.ResourceClaim]{
			{Name: "State", Description: "Whether the claim has devices, and is in use.", Value: func(c *resourcev1.ResourceClaim) any { return claimState(c) }},
			resource.Age[*resourcev1.ResourceClaim](),
		},
	}
}

func resourceClaimTemplate() *resource.Kind[*resourcev1.ResourceClaimTemplate] {
	return &resource.Kind[*resourcev1.ResourceClaimTemplate]{
		Resource: "resourceclaimtemplates",
		New:      func() *resourcev1.ResourceClaimTemplate { return &resourcev1.ResourceClaimTemplate{} },
		NewList:  func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} },
		Default:  func(t *resourcev1.ResourceClaimTemplate) { defaultClaim(&t.Spec.Spec) },
		Validate: func(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return validateClaim(&t.Spec.Spec, spec.Child("spec"))
		},
		ValidateUpdate: func(t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return rules.Unchanged(t.Spec, old.Spec, spec)
		},
		Columns: []resource.Column[*resourcev1.ResourceClaimTemplate]{resource.Age[*resourcev1.ResourceClaimTemplate]()},
	}
}

func claimState(c *resourcev1.ResourceClaim) string {
	var states string
	add := func(state string) {
		if states != "" {
			states += ","
		}
		states += state
	}
	if c.DeletionTimestamp != nil {
		add("deleted")
	}
	if c.Status.Allocation == nil {
		if c.DeletionTimestamp == nil {
			add("pending")
		}
		return states
	}
	add("allocated")
	if len(c.Status.ReservedFor) > 0 {
		add("reserved")
	}
	return states
}

func defaultClaim(s *resourcev1.ResourceClaimSpec) {
	amount := func(mode *resourcev1.DeviceAllocationMode, count *int64, tolerations []resourcev1.DeviceToleration) {
		if *mode == "" {
			*mode = resourcev1.DeviceAllocationModeExactCount
		}
		if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
			*count = 1
		}
		for i := range tolerations {
			if tolerations[i].Operator == "" {
				tolerations[i].Operator = resourcev1.DeviceTolerationOpEqual
			}
		}
	}
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if r.Exactly != nil {
			amount(&r.Exactly.AllocationMode, &r.Exactly.Count, r.Exactly.Tolerations)
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			amount(&sub.AllocationMode, &sub.Count, sub.Tolerations)
		}
	}
}

func validateClaim(s *resourcev1.ResourceClaimSpec, path *field.Path) field.ErrorList {
	path = path.Child("devices")
	errs := rules.AtMost(s.Devices.Requests, resourcev1.DeviceRequestsMaxSize, path.Child("requests"))
	names := sets.New[string]()
	for i := range s.Devices.Requests {
		r, p := &s.Devices.Requests[i], path.Child("requests").Index(i)
		errs = append(errs, rules.Label(r.Name, p.Child("name"))...)
		if names.Has(r.Name) {
			errs = append(errs, field.Duplicate(p.Child("name"), r.Name))
		}
		names.Insert(r.Name)
		errs = append(errs, validateRequest(r, names, p)...)
	}
	errs = append(errs, rules.AtMost(s.Devices.Constraints, resourcev1.DeviceConstraintsMaxSize, path.Child("constraints"))...)
	for i, c := range s.Devices.Constraints {
		p := path.Child("constraints").Index(i)
		errs = append(errs, validateNames(c.Requests, names, p.Child("requests"))...)
		if c.MatchAttribute == nil && c.DistinctAttribute == nil {
			errs = append(errs, field.Required(p, `exactly one of "matchAttribute" or "distinctAttribute" is required`))
		}
	}
	errs = append(errs, rules.AtMost(s.Devices.Config, resourcev1.DeviceConfigMaxSize, path.Child("config"))...)
	for i, c := range s.Devices.Config {
		errs = append(errs, validateNames(c.Requests, names, path.Child("config").Index(i).Child("requests"))...)
	}
	return errs
}

func validateNames(list []string, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range list {
		if !names.Has(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
		}
		if slices.Index(list, name) < i {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

// validateRequest adds the names of the request's alternatives to names.
func validateRequest(r *resourcev1.DeviceRequest, names sets.Set[string], path *field.Path) field.ErrorList {
	switch {
	case r.Exactly == nil && len(r.FirstAvailable) == 0:
		return field.ErrorList{field.Required(path, "exactly one of `exactly` or `firstAvailable` is required")}
	case r.Exactly != nil && len(r.FirstAvailable) > 0:
		return field.ErrorList{field.Invalid(path, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")}
	case r.Exactly != nil:
		e, p := r.Exactly, path.Child("exactly")
		return validateAmount(e.DeviceClassName, e.AllocationMode, e.Count, e.Selectors, p)
	}
	errs := rules.AtMost(r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize, path.Child("firstAvailable"))
	for i := range r.FirstAvailable {
		s, p := &r.FirstAvailable[i], path.Child("firstAvailable").Index(i)
		errs = append(errs, rules.Label(s.Name, p.Child("name"))...)
		name := r.Name + "/" + s.Name
		if names.Has(name) {
			errs = append(errs, field.Duplicate(p.Child("name"), s.Name))
		}
		names.Insert(name)
		errs = append(errs, validateAmount(s.DeviceClassName, s.AllocationMode, s.Count, s.Selectors, p)...)
	}
	return errs
}

func validateAmount(class string, mode resourcev1.DeviceAllocationMode, count int64, selectors []resourcev1.DeviceSelector, path *field.Path) field.ErrorList {
	errs := rules.Subdomain(class, path.Child("deviceClassName"))
	errs = append(errs, validateSelectors(selectors, path.Child("selectors"))...)
	switch mode {
	case resourcev1.DeviceAllocationModeAll:
		if count != 0 {
			errs = append(errs, field.Invalid(path.Child("count"), count, fmt.Sprintf("must not be specified when allocationMode is '%s'", mode)))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		errs = append(errs, rules.Positive(count, path.Child("count"))...)
	default:
		errs = append(errs, field.NotSupported(path.Child("allocationMode"), mode, []resourcev1.DeviceAllocationMode{
			resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount,
		}))
	}
	return errs
}

func validateClaimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	status := field.NewPath("status")
	errs := rules.AtMost(c.Status.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize, status.Child("reservedFor"))
	if len(c.Status.ReservedFor) > 0 && c.Status.Allocation == nil {
		errs = append(errs, field.Forbidden(status.Child("reservedFor"), "may not be specified when `allocated` is not set"))
	}
	uids := sets.New[string]()
	for i, r := range c.Status.ReservedFor {
		p := status.Child("reservedFor").Index(i)
		errs = append(errs, rules.Required(r.Resource, p.Child("resource"))...)
		errs = append(errs, rules.Required(r.Name, p.Child("name"))...)
		errs = append(errs, rules.Required(r.UID, p.Child("uid"))...)
		if uids.Has(string(r.UID)) {
			errs = append(errs, field.Duplicate(p.Child("uid"), r.UID))
		}
		uids.Insert(string(r.UID))
	}
	// Devices that somebody may be using are not exchanged under him.
	if old.Status.Allocation != nil && c.Status.Allocation != nil {
		errs = append(errs, rules.Unchanged(c.Status.Allocation, old.Status.Allocation, status.Child("allocation"))...)
	}
	return errs
}
