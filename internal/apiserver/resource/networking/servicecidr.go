package networking

import (
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// ServiceCIDR returns the kind whose objects are further networks that services get addresses from.
func ServiceCIDR() *resource.Kind[*networkingv1.ServiceCIDR] {
	return &resource.Kind[*networkingv1.ServiceCIDR]{
		Resource:    "servicecidrs",
		ClusterWide: true,
		HasStatus:   true,
		New:         func() *networkingv1.ServiceCIDR { return &networkingv1.ServiceCIDR{} },
		NewList:     func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
		Validate:    validateServiceCIDR,
		ValidateUpdate: func(c, old *networkingv1.ServiceCIDR) field.ErrorList {
			path := spec.Child("cidrs")
			for i, cidr := range old.Spec.CIDRs {
				if i >= len(c.Spec.CIDRs) || c.Spec.CIDRs[i] != cidr {
					return field.ErrorList{field.Invalid(path.Index(i), c.Spec.CIDRs, "field is immutable")}
				}
			}
			return validateServiceCIDR(c)
		},
		ValidateStatus: func(c, _ *networkingv1.ServiceCIDR) field.ErrorList {
			return rules.Conditions(c.Status.Conditions, field.NewPath("status", "conditions"))
		},
		Columns: []resource.Column[*networkingv1.ServiceCIDR]{
			{Name: "CIDRs", Description: "Networks that services get addresses from.", Value: func(c *networkingv1.ServiceCIDR) any { return strings.Join(c.Spec.CIDRs, ",") }},
			resource.Age[*networkingv1.ServiceCIDR](),
		},
	}
}

func validateServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	path := spec.Child("cidrs")
	if len(c.Spec.CIDRs) == 0 {
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	}
	if len(c.Spec.CIDRs) > 2 {
		return field.ErrorList{field.Invalid(path, c.Spec.CIDRs, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	var families []bool
	for i, text := range c.Spec.CIDRs {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Index(i), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
			continue
		case prefix.Masked().String() != text:
			errs = append(errs, field.Invalid(path.Index(i), text, "must be in canonical form ("+prefix.Masked().String()+")"))
		case slices.Contains(families, prefix.Addr().Is4()):
			errs = append(errs, field.Invalid(path, c.Spec.CIDRs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
		families = append(families, prefix.Addr().Is4())
	}
	return errs
}
