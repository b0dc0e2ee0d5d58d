package core

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// setFamilies says what the cluster has: IPv4. A service without selector may name any, since its endpoints are not the cluster's.
func setFamilies(s *corev1.Service) error {
	if !needsClusterIP(s) {
		return nil
	}
	spec := &s.Spec
	free := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
		if free {
			spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		if free && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
			spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
		}
	}
	if free {
		return nil
	}
	var errs field.ErrorList
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilyPolicy"), *spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	if slices.Contains(spec.IPFamilies, corev1.IPv6Protocol) {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(0), corev1.IPv6Protocol, "not configured on this cluster"))
	}
	if len(errs) > 0 {
		return invalidService(s, errs)
	}
	return nil
}

func heldAddresses(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	if !needsClusterIP(s) {
		return nil
	}
	for _, ip := range s.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			out = append(out, address)
		}
	}
	return out
}

// heldPorts are the numbers of the node ports, each once.
func heldPorts(s *corev1.Service) []int32 {
	var out []int32
	add := func(port int32) {
		if port != 0 && !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	for i := range s.Spec.Ports {
		add(s.Spec.Ports[i].NodePort)
	}
	add(s.Spec.HealthCheckNodePort)
	return out
}

func without[T comparable](list, others []T) []T {
	var out []T
	for _, v := range list {
		if !slices.Contains(others, v) {
			out = append(out, v)
		}
	}
	return out
}
