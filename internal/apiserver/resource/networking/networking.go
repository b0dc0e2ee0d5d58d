// Package networking describes the kinds of the group networking.k8s.io, one in a file.
package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group. Addresses is the kind IPAddress, which services use too.
func Group(addresses *resource.Kind[*networkingv1.IPAddress]) resource.Group {
	return resource.Group{
		GroupVersion: networkingv1.SchemeGroupVersion,
		AddToScheme:  networkingv1.AddToScheme,
		Kinds:        []resource.Description{ingressClass(), ingress(), addresses, networkPolicy(), serviceCIDR()},
	}
}

var spec = field.NewPath("spec")
