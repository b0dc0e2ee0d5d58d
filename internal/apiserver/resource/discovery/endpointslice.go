// Package discovery describes the kinds of the group discovery.k8s.io.
package discovery

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Bounds of one slice.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxPorts     = 100
	// shown is how many ports and addresses `kubectl get` lists.
	shown = 3
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: discoveryv1.SchemeGroupVersion,
		AddToScheme:  discoveryv1.AddToScheme,
		Kinds:        []resource.Description{endpointSlice()},
	}
}

func endpointSlice() *resource.Kind[*discoveryv1.EndpointSlice] {
	return &resource.Kind[*discoveryv1.EndpointSlice]{
		Resource:   "endpointslices",
		Generation: true,
		New:        func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		NewList:    func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		Default: func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				p := &s.Ports[i]
				if p.Name == nil {
					p.Name = ptr.To("")
				}
				if p.Protocol == nil {
					p.Protocol = ptr.To(corev1.ProtocolTCP)
				}
			}
		},
		Validate: validateSlice,
		ValidateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			return append(validateSlice(s), rules.Unchanged(s.AddressType, old.AddressType, field.NewPath("addressType"))...)
		},
		Columns: []resource.Column[*discoveryv1.EndpointSlice]{
			{Name: "AddressType", Description: "IPv4, IPv6 or FQDN.", Value: func(s *discoveryv1.EndpointSlice) any { return string(s.AddressType) }},
			{Name: "Ports", Description: "Ports of every endpoint.", Value: func(s *discoveryv1.EndpointSlice) any { return portsText(s.Ports) }},
			{Name: "Endpoints", Description: "Addresses of the endpoints.", Value: func(s *discoveryv1.EndpointSlice) any { return endpointsText(s.Endpoints) }},
			resource.Age[*discoveryv1.EndpointSlice](),
		},
	}
}

func portsText(ports []discoveryv1.EndpointPort) string {
	var list []string
	for _, p := range ports {
		switch {
		case p.Port != nil:
			list = append(list, strconv.Itoa(int(*p.Port)))
		case ptr.Deref(p.Name, "") != "":
			list = append(list, *p.Name)
		default:
			list = append(list, "*")
		}
	}
	return shorten(list)
}

func endpointsText(endpoints []discoveryv1.Endpoint) string {
	var list []string
	for _, e := range endpoints {
		list = append(list, e.Addresses...)
	}
	return shorten(list)
}

func shorten(list []string) string {
	if len(list) == 0 {
		return "<unset>"
	}
	if len(list) > shown {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:shown], ","), len(list)-shown)
	}
	return strings.Join(list, ",")
}

func validateSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := rules.OneOf(s.AddressType, field.NewPath("addressType"), discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	errs = append(errs, rules.AtMost(s.Endpoints, maxEndpoints, field.NewPath("endpoints"))...)
	for i := range s.Endpoints {
		errs = append(errs, validateEndpoint(&s.Endpoints[i], s.AddressType, field.NewPath("endpoints").Index(i))...)
	}
	return append(errs, validatePorts(s.Ports, field.NewPath("ports"))...)
}

func validateEndpoint(e *discoveryv1.Endpoint, family discoveryv1.AddressType, path *field.Path) field.ErrorList {
	addresses := path.Child("addresses")
	errs := rules.AtMost(e.Addresses, maxAddresses, addresses)
	if len(e.Addresses) == 0 {
		errs = append(errs, field.Required(addresses, "must contain at least 1 address"))
	}
	for i, address := range e.Addresses {
		errs = append(errs, validateAddress(address, family, addresses.Index(i))...)
	}
	if e.Hostname != nil {
		errs = append(errs, rules.Label(*e.Hostname, path.Child("hostname"))...)
	}
	if e.NodeName != nil {
		errs = append(errs, rules.Subdomain(*e.NodeName, path.Child("nodeName"))...)
	}
	if e.Hints != nil {
		for i, zone := range e.Hints.ForZones {
			errs = append(errs, rules.Required(zone.Name, path.Child("hints", "forZones").Index(i).Child("name"))...)
		}
	}
	return errs
}

func validateAddress(address string, family discoveryv1.AddressType, path *field.Path) field.ErrorList {
	if family == discoveryv1.AddressTypeFQDN {
		return utilvalidation.IsFullyQualifiedDomainName(path, address)
	}
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, address, "must be a valid IP address")}
	case family == discoveryv1.AddressTypeIPv4 && !ip.Is4():
		return field.ErrorList{field.Invalid(path, address, "must be a valid IPv4 address")}
	case family == discoveryv1.AddressTypeIPv6 && !ip.Is6():
		return field.ErrorList{field.Invalid(path, address, "must be a valid IPv6 address")}
	case ip.IsUnspecified():
		return field.ErrorList{field.Invalid(path, address, fmt.Sprintf("may not be unspecified (%v)", address))}
	case ip.IsLoopback():
		return field.ErrorList{field.Invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")}
	case ip.IsLinkLocalUnicast():
		return field.ErrorList{field.Invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")}
	case ip.IsLinkLocalMulticast():
		return field.ErrorList{field.Invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")}
	}
	return nil
}

func validatePorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	errs := rules.AtMost(ports, maxPorts, path)
	names := sets.New[string]()
	for i, port := range ports {
		p := path.Index(i)
		name := ptr.Deref(port.Name, "")
		if name != "" {
			errs = append(errs, rules.Label(name, p.Child("name"))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(p.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, rules.OneOf(ptr.Deref(port.Protocol, ""), p.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if port.Port != nil {
			errs = append(errs, rules.Port(*port.Port, p.Child("port"))...)
		}
	}
	return errs
}
