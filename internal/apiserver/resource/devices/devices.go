// Package devices describes the kinds of the group resource.k8s.io, by which pods claim devices, one in a file.
package devices

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: resourcev1.SchemeGroupVersion,
		AddToScheme:  resourcev1.AddToScheme,
		Kinds:        []resource.Description{deviceClass(), deviceTaintRule(), resourceClaim(), resourceClaimTemplate(), resourceSlice()},
	}
}

var spec = field.NewPath("spec")

func deviceClass() *resource.Kind[*resourcev1.DeviceClass] {
	return &resource.Kind[*resourcev1.DeviceClass]{
		Resource:            "deviceclasses",
		ClusterWide:         true,
		Generation:          true,
		AllowCreateOnUpdate: true,
		New:                 func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} },
		NewList:             func() runtime.Object { return &resourcev1.DeviceClassList{} },
		Validate: func(c *resourcev1.DeviceClass) field.ErrorList {
			errs := validateSelectors(c.Spec.Selectors, spec.Child("selectors"))
			errs = append(errs, rules.AtMost(c.Spec.Config, resourcev1.DeviceConfigMaxSize, spec.Child("config"))...)
			if name := c.Spec.ExtendedResourceName; name != nil {
				errs = append(errs, rules.Qualified(*name, spec.Child("extendedResourceName"))...)
			}
			return errs
		},
		Columns: []resource.Column[*resourcev1.DeviceClass]{resource.Age[*resourcev1.DeviceClass]()},
	}
}

func validateSelectors(selectors []resourcev1.DeviceSelector, path *field.Path) field.ErrorList {
	errs := rules.AtMost(selectors, resourcev1.DeviceSelectorsMaxSize, path)
	for i, s := range selectors {
		switch p := path.Index(i).Child("cel"); {
		case s.CEL == nil:
			errs = append(errs, field.Required(p, ""))
		case strings.TrimSpace(s.CEL.Expression) == "":
			errs = append(errs, field.Required(p.Child("expression"), ""))
		case len(s.CEL.Expression) > resourcev1.CELSelectorExpressionMaxLength:
			errs = append(errs, field.TooLong(p.Child("expression"), "", resourcev1.CELSelectorExpressionMaxLength))
		}
	}
	return errs
}

func resourceSlice() *resource.Kind[*resourcev1.ResourceSlice] {
	return &resource.Kind[*resourcev1.ResourceSlice]{
		Resource:            "resourceslices",
		ClusterWide:         true,
		Generation:          true,
		AllowCreateOnUpdate: true,
		New:                 func() *resourcev1.ResourceSlice { return &resourcev1.ResourceSlice{} },
		NewList:             func() runtime.Object { return &resourcev1.ResourceSliceList{} },
		Validate:            validateSlice,
		ValidateUpdate: func(s, old *resourcev1.ResourceSlice) field.ErrorList {
			errs := validateSlice(s)
			errs = append(errs, rules.Unchanged(s.Spec.NodeName, old.Spec.NodeName, spec.Child("nodeName"))...)
			errs = append(errs, rules.Unchanged(s.Spec.Driver, old.Spec.Driver, spec.Child("driver"))...)
			return append(errs, rules.Unchanged(s.Spec.Pool.Name, old.Spec.Pool.Name, spec.Child("pool", "name"))...)
		},
		Index: resourcev1.ResourceSliceSelectorNodeName,
		Fields: map[string]func(*resourcev1.ResourceSlice) string{
			resourcev1.ResourceSliceSelectorNodeName: func(s *resourcev1.ResourceSlice) string { return ptr.Deref(s.Spec.NodeName, "") },
			resourcev1.ResourceSliceSelectorDriver:   func(s *resourcev1.ResourceSlice) string { return s.Spec.Driver },
			resourcev1.ResourceSliceSelectorPoolName: func(s *resourcev1.ResourceSlice) string { return s.Spec.Pool.Name },
		},
		Columns: []resource.Column[*resourcev1.ResourceSlice]{
			{Name: "Node", Description: "The node that has the devices.", Value: func(s *resourcev1.ResourceSlice) any { return ptr.Deref(s.Spec.NodeName, "") }},
			{Name: "Driver", Description: "The driver.", Value: func(s *resourcev1.ResourceSlice) any { return s.Spec.Driver }},
			{Name: "Pool", Description: "The pool that the devices are of.", Value: func(s *resourcev1.ResourceSlice) any { return s.Spec.Pool.Name }},
			resource.Age[*resourcev1.ResourceSlice](),
		},
	}
}

func validateSlice(s *resourcev1.ResourceSlice) field.ErrorList {
	errs := rules.Subdomain(s.Spec.Driver, spec.Child("driver"))
	if len(s.Spec.Driver) > resourcev1.DriverNameMaxLength {
		errs = append(errs, field.TooLong(spec.Child("driver"), "", resourcev1.DriverNameMaxLength))
	}
	pool := spec.Child("pool")
	errs = append(errs, validatePool(s.Spec.Pool.Name, pool.Child("name"))...)
	errs = append(errs, rules.Positive(s.Spec.Pool.ResourceSliceCount, pool.Child("resourceSliceCount"))...)
	errs = append(errs, rules.NotNegative(s.Spec.Pool.Generation, pool.Child("generation"))...)
	where := 0
	for _, given := range []bool{ptr.Deref(s.Spec.NodeName, "") != "", s.Spec.NodeSelector != nil, ptr.Deref(s.Spec.AllNodes, false), ptr.Deref(s.Spec.PerDeviceNodeSelection, false)} {
		if given {
			where++
		}
	}
	switch {
	case where == 0:
		errs = append(errs, field.Required(spec, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"))
	case where > 1:
		errs = append(errs, field.Invalid(spec, "", "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"))
	}
	errs = append(errs, rules.AtMost(s.Spec.Devices, resourcev1.ResourceSliceMaxDevices, spec.Child("devices"))...)
	names := sets.New[string]()
	for i := range s.Spec.Devices {
		errs = append(errs, validateDevice(&s.Spec.Devices[i], names, spec.Child("devices").Index(i))...)
	}
	return errs
}

// validatePool wants names of subdomains, separated by slashes.
func validatePool(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, rules.Subdomain(part, path)...)
	}
	return errs
}

func validateDevice(d *resourcev1.Device, names sets.Set[string], path *field.Path) field.ErrorList {
	errs := rules.Label(d.Name, path.Child("name"))
	if names.Has(d.Name) {
		errs = append(errs, field.Duplicate(path.Child("name"), d.Name))
	}
	names.Insert(d.Name)
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.Invalid(path, n, "the total number of attributes and capacities must not exceed 32"))
	}
	errs = append(errs, rules.AtMost(d.Taints, resourcev1.DeviceTaintsMaxLength, path.Child("taints"))...)
	for i, t := range d.Taints {
		errs = append(errs, validateTaint(t, path.Child("taints").Index(i))...)
	}
	return errs
}
