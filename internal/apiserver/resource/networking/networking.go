// Package networking describes the kinds of the group networking.k8s.io, one in a file.
package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group. Addresses and networks are the kinds IPAddress and ServiceCIDR, which services use too.
func Group(addresses *resource.Kind[*networkingv1.IPAddress], networks *resource.Kind[*networkingv1.ServiceCIDR]) resource.Group {
	return resource.Group{
		GroupVersion: networkingv1.SchemeGroupVersion,
		AddToScheme:  networkingv1.AddToScheme,
		Kinds:        []resource.Description{ingressClass(), ingress(), addresses, networkPolicy(), networks},
	}
}

var spec = field.NewPath("spec")
