package networking

import (
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// IPAddress returns the kind whose objects are the addresses that are taken.
func IPAddress() *resource.Kind[*networkingv1.IPAddress] {
	return &resource.Kind[*networkingv1.IPAddress]{
		Resource:     "ipaddresses",
		ShortNames:   []string{"ip"},
		ClusterWide:  true,
		New:          func() *networkingv1.IPAddress { return &networkingv1.IPAddress{} },
		NewList:      func() runtime.Object { return &networkingv1.IPAddressList{} },
		ValidateName: validateAddressName,
		Validate:     validateIPAddress,
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			return append(validateIPAddress(a), rules.Unchanged(a.Spec.ParentRef, old.Spec.ParentRef, spec.Child("parentRef"))...)
		},
		Fields: map[string]func(*networkingv1.IPAddress) string{
			"spec.parentRef.name": func(a *networkingv1.IPAddress) string {
				if a.Spec.ParentRef == nil {
					return ""
				}
				return a.Spec.ParentRef.Name
			},
		},
		Columns: []resource.Column[*networkingv1.IPAddress]{
			{Name: "ParentRef", Description: "Who has the address.", Value: func(a *networkingv1.IPAddress) any { return parentText(a.Spec.ParentRef) }},
			resource.Age[*networkingv1.IPAddress](),
		},
	}
}

// validateAddressName wants the one way to write the address, so that nobody takes it under another name.
func validateAddressName(name string, _ bool) []string {
	address, err := netip.ParseAddr(name)
	if err != nil {
		return []string{"must be a valid IP address in canonical form"}
	}
	if address.String() != name {
		return []string{"must be a valid IP address in canonical form (" + address.String() + ")"}
	}
	return nil
}

func validateIPAddress(a *networkingv1.IPAddress) field.ErrorList {
	path := spec.Child("parentRef")
	ref := a.Spec.ParentRef
	if ref == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if ref.Group != "" {
		errs = append(errs, rules.Subdomain(ref.Group, path.Child("group"))...)
	}
	errs = append(errs, rules.Required(ref.Resource, path.Child("resource"))...)
	return append(errs, rules.Required(ref.Name, path.Child("name"))...)
}

func parentText(ref *networkingv1.ParentReference) string {
	if ref == nil {
		return resource.None
	}
	parts := []string{ref.Resource, ref.Namespace, ref.Name}
	if ref.Group != "" {
		parts[0] += "." + ref.Group
	}
	if ref.Namespace == "" {
		parts = []string{parts[0], ref.Name}
	}
	return strings.Join(parts, "/")
}
