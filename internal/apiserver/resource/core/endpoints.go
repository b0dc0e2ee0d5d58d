package core

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// shownEndpoints is how many endpoints `kubectl get` lists.
const shownEndpoints = 3

func endpoints() *resource.Kind[*corev1.Endpoints] {
	return &resource.Kind[*corev1.Endpoints]{
		Resource: "endpoints",
		// The kind is a plural already.
		Singular:            "endpoints",
		ShortNames:          []string{"ep"},
		AllowCreateOnUpdate: true,
		New:                 func() *corev1.Endpoints { return &corev1.Endpoints{} },
		NewList:             func() runtime.Object { return &corev1.EndpointsList{} },
		ValidateName:        validation.NameIsDNSSubdomain,
		Default: func(e *corev1.Endpoints) {
			for i := range e.Subsets {
				for j := range e.Subsets[i].Ports {
					if p := &e.Subsets[i].Ports[j]; p.Protocol == "" {
						p.Protocol = corev1.ProtocolTCP
					}
				}
			}
		},
		Validate: validateEndpoints,
		Warnings: func(*corev1.Endpoints) []string {
			return []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
		},
		Columns: []resource.Column[*corev1.Endpoints]{
			{Name: "Endpoints", Description: "Addresses and ports behind the service.", Value: func(e *corev1.Endpoints) any { return endpointsText(e) }},
			resource.Age[*corev1.Endpoints](),
		},
	}
}

func endpointsText(e *corev1.Endpoints) string {
	var list []string
	count := 0
	for _, subset := range e.Subsets {
		if len(subset.Ports) == 0 {
			// A headless service has no ports.
			for _, address := range subset.Addresses {
				if count++; count <= shownEndpoints {
					list = append(list, address.IP)
				}
			}
		}
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				if count++; count <= shownEndpoints {
					list = append(list, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
				}
			}
		}
	}
	text := strings.Join(list, ",")
	if count > shownEndpoints {
		return fmt.Sprintf("%s + %d more...", text, count-shownEndpoints)
	}
	return resource.OrNone(text)
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		subset, path := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range subset.Addresses {
			errs = append(errs, validateEndpointAddress(&subset.Addresses[j], path.Child("addresses").Index(j))...)
		}
		for j := range subset.NotReadyAddresses {
			errs = append(errs, validateEndpointAddress(&subset.NotReadyAddresses[j], path.Child("notReadyAddresses").Index(j))...)
		}
		for j, port := range subset.Ports {
			p := path.Child("ports").Index(j)
			if port.Name == "" && len(subset.Ports) > 1 {
				errs = append(errs, field.Required(p.Child("name"), ""))
			} else if port.Name != "" {
				errs = append(errs, rules.Label(port.Name, p.Child("name"))...)
			}
			errs = append(errs, rules.Port(port.Port, p.Child("port"))...)
			errs = append(errs, rules.OneOf(port.Protocol, p.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		}
	}
	return errs
}

func validateEndpointAddress(a *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := validateOutsideIP(a.IP, path.Child("ip"))
	if a.Hostname != "" {
		errs = append(errs, rules.Label(a.Hostname, path.Child("hostname"))...)
	}
	if a.NodeName != nil {
		errs = append(errs, rules.Subdomain(*a.NodeName, path.Child("nodeName"))...)
	}
	return errs
}
