package core

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

var specPath = field.NewPath("spec")

// maxAffinitySeconds is a day.
const maxAffinitySeconds = 86400

func validateService(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	headless := spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	errs = append(errs, validateServiceType(spec)...)
	errs = append(errs, validateServicePorts(s)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, specPath.Child("selector"))...)
	errs = append(errs, rules.OneOf(spec.SessionAffinity, specPath.Child("sessionAffinity"), corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	errs = append(errs, validateAffinityTimeout(spec)...)
	errs = append(errs, validateClusterIPs(spec)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, validateOutsideIP(ip, specPath.Child("externalIPs").Index(i))...)
	}
	return append(errs, validateTrafficPolicies(s)...)
}

func validateServiceType(spec *corev1.ServiceSpec) field.ErrorList {
	path := specPath.Child("type")
	errs := rules.OneOf(spec.Type, path, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		if spec.ClusterIP != "" {
			errs = append(errs, field.Forbidden(specPath.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if spec.ExternalName == "" {
			return append(errs, field.Required(specPath.Child("externalName"), ""))
		}
		return append(errs, rules.Invalid(utilvalidation.IsDNS1123Subdomain(strings.TrimSuffix(spec.ExternalName, ".")), specPath.Child("externalName"), spec.ExternalName)...)
	case spec.ClusterIP == corev1.ClusterIPNone && spec.Type != corev1.ServiceTypeClusterIP && spec.Type != "":
		errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(0), spec.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)))
	}
	return errs
}

func validateServicePorts(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := specPath.Child("ports")
	names, keys, nodePorts := sets.New[string](), sets.New[portKey](), sets.New[portKey]()
	for i, port := range s.Spec.Ports {
		p := path.Index(i)
		errs = append(errs, validateServicePort(&port, len(s.Spec.Ports) > 1, names, p)...)
		key := portKey{port.Protocol, port.Port}
		if keys.Has(key) {
			errs = append(errs, field.Duplicate(p, corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
		}
		keys.Insert(key)
		if port.NodePort == 0 {
			continue
		}
		if !mayHaveNodePorts(s) {
			errs = append(errs, field.Forbidden(p.Child("nodePort"), fmt.Sprintf("may not be used when `type` is '%s'", s.Spec.Type)))
			continue
		}
		if node := (portKey{port.Protocol, port.NodePort}); nodePorts.Has(node) {
			errs = append(errs, field.Duplicate(p.Child("nodePort"), port.NodePort))
		} else {
			nodePorts.Insert(node)
		}
	}
	return errs
}

func validateServicePort(port *corev1.ServicePort, needName bool, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case port.Name == "" && needName:
		errs = append(errs, field.Required(path.Child("name"), ""))
	case port.Name != "" && names.Has(port.Name):
		errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
	case port.Name != "":
		errs = append(errs, rules.Label(port.Name, path.Child("name"))...)
	}
	names.Insert(port.Name)
	errs = append(errs, rules.Port(port.Port, path.Child("port"))...)
	errs = append(errs, rules.OneOf(port.Protocol, path.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	if port.TargetPort.Type == intstr.Int {
		errs = append(errs, rules.Invalid(utilvalidation.IsValidPortNum(port.TargetPort.IntValue()), path.Child("targetPort"), port.TargetPort)...)
	} else {
		errs = append(errs, rules.Invalid(utilvalidation.IsValidPortName(port.TargetPort.StrVal), path.Child("targetPort"), port.TargetPort)...)
	}
	if port.AppProtocol != nil {
		errs = append(errs, rules.Qualified(*port.AppProtocol, path.Child("appProtocol"))...)
	}
	if port.NodePort < 0 || port.NodePort > 65535 {
		errs = append(errs, field.Invalid(path.Child("nodePort"), port.NodePort, utilvalidation.InclusiveRangeError(0, 65535)))
	}
	return errs
}

func validateAffinityTimeout(spec *corev1.ServiceSpec) field.ErrorList {
	c := spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return nil
	}
	if t := *c.ClientIP.TimeoutSeconds; t <= 0 || t > maxAffinitySeconds {
		return field.ErrorList{field.Invalid(specPath.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), t,
			fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds))}
	}
	return nil
}

func validateClusterIPs(spec *corev1.ServiceSpec) field.ErrorList {
	path := specPath.Child("clusterIPs")
	var errs field.ErrorList
	if len(spec.ClusterIPs) > 0 && spec.ClusterIP != spec.ClusterIPs[0] {
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	errs = append(errs, rules.AtMost(spec.ClusterIPs, 2, path)...)
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone && i == 0 {
			continue
		}
		errs = append(errs, utilvalidation.IsValidIP(path.Index(i), ip)...)
	}
	for i, family := range spec.IPFamilies {
		errs = append(errs, rules.OneOf(family, specPath.Child("ipFamilies").Index(i), corev1.IPv4Protocol, corev1.IPv6Protocol)...)
	}
	return append(errs, rules.OneOfPointer(spec.IPFamilyPolicy, specPath.Child("ipFamilyPolicy"),
		corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
}

// validateOutsideIP refuses addresses that mean something else to each machine.
func validateOutsideIP(ip string, path *field.Path) field.ErrorList {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return field.ErrorList{field.Invalid(path, ip, "must be a valid IP address")}
	}
	var errs field.ErrorList
	if address.IsUnspecified() {
		errs = append(errs, field.Invalid(path, ip, fmt.Sprintf("may not be unspecified (%v)", ip)))
	}
	if address.IsLoopback() {
		errs = append(errs, field.Invalid(path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
	}
	if address.IsLinkLocalUnicast() {
		errs = append(errs, field.Invalid(path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
	}
	if address.IsLinkLocalMulticast() {
		errs = append(errs, field.Invalid(path, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
	}
	return errs
}

func validateTrafficPolicies(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	if servesOutside(s) {
		errs = append(errs, rules.OneOf(spec.ExternalTrafficPolicy, specPath.Child("externalTrafficPolicy"),
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	} else if spec.ExternalTrafficPolicy != "" {
		errs = append(errs, field.Invalid(specPath.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if !needsHealthPort(s) && spec.HealthCheckNodePort != 0 {
		errs = append(errs, field.Invalid(specPath.Child("healthCheckNodePort"), spec.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	errs = append(errs, rules.OneOfPointer(spec.InternalTrafficPolicy, specPath.Child("internalTrafficPolicy"),
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	errs = append(errs, rules.OneOfPointer(spec.TrafficDistribution, specPath.Child("trafficDistribution"),
		corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		return errs
	}
	if len(spec.LoadBalancerSourceRanges) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("loadBalancerSourceRanges"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.AllocateLoadBalancerNodePorts != nil {
		errs = append(errs, field.Forbidden(specPath.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.LoadBalancerClass != nil {
		errs = append(errs, field.Forbidden(specPath.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	return errs
}

func validateServiceUpdate(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := specPath.Child("clusterIPs")
	if needsClusterIP(s) && needsClusterIP(old) && old.Spec.ClusterIP != "" && s.Spec.ClusterIP != old.Spec.ClusterIP {
		if s.Spec.ClusterIP == "" {
			errs = append(errs, field.Invalid(path.Index(0), s.Spec.ClusterIPs, "primary clusterIP can not be unset"))
		} else {
			errs = append(errs, field.Invalid(path.Index(0), s.Spec.ClusterIPs, "may not change once set"))
		}
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && old.Spec.Type == corev1.ServiceTypeLoadBalancer {
		errs = append(errs, rules.Unchanged(s.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass, specPath.Child("loadBalancerClass"))...)
	}
	if needsHealthPort(s) && needsHealthPort(old) {
		errs = append(errs, rules.Unchanged(s.Spec.HealthCheckNodePort, old.Spec.HealthCheckNodePort, specPath.Child("healthCheckNodePort"))...)
	}
	return append(errs, validateService(s)...)
}
