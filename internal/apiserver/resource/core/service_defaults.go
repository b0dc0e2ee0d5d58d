package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if servesOutside(s) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.InternalTrafficPolicy == nil && spec.Type != corev1.ServiceTypeExternalName {
		spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = ptr.To(true)
	}
}

// servesOutside reports whether the service takes traffic from outside the cluster, so that a policy for it makes sense.
func servesOutside(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer ||
		s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

func needsClusterIP(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName
}

func needsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true)
}

// mayHaveNodePorts: a load balancer that allocates none can still be given some.
func mayHaveNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

func needsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func prepareService(_ context.Context, s *corev1.Service) {
	s.Spec.ClusterIPs = agreeClusterIPs(s.Spec.ClusterIP, s.Spec.ClusterIPs)
}

// agreeClusterIPs follows clusterIP, which older clients know alone.
func agreeClusterIPs(one string, all []string) []string {
	if one != "" && len(all) == 0 {
		return []string{one}
	}
	return all
}

// prepareServiceUpdate carries over what was allocated and the client left out, and drops what the former type had and the new one has not.
func prepareServiceUpdate(_ context.Context, s, old *corev1.Service) {
	keepAllocated(s, old)
	switch {
	case s.Spec.ClusterIP != old.Spec.ClusterIP && slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs):
		// A client that knows clusterIP alone has changed it.
		s.Spec.ClusterIPs = nil
	case s.Spec.ClusterIP == old.Spec.ClusterIP && s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0:
		s.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
	s.Spec.ClusterIPs = agreeClusterIPs(s.Spec.ClusterIP, s.Spec.ClusterIPs)
	dropUnneeded(s, old)
}

func keepAllocated(s, old *corev1.Service) {
	if needsClusterIP(s) && needsClusterIP(old) {
		if s.Spec.ClusterIP == "" && len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = old.Spec.ClusterIP, slices.Clone(old.Spec.ClusterIPs)
		}
		if len(s.Spec.IPFamilies) == 0 {
			s.Spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
		}
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
	}
	if needsNodePorts(s) && needsNodePorts(old) {
		keepNodePorts(s, old)
	}
	if needsHealthPort(s) && needsHealthPort(old) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

type portKey struct {
	protocol corev1.Protocol
	port     int32
}

func keepNodePorts(s, old *corev1.Service) {
	before, used := map[portKey]int32{}, map[int32]bool{}
	for _, p := range old.Spec.Ports {
		before[portKey{p.Protocol, p.Port}] = p.NodePort
	}
	for _, p := range s.Spec.Ports {
		used[p.NodePort] = true
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if had := before[portKey{p.Protocol, p.Port}]; p.NodePort == 0 && !used[had] {
			p.NodePort = had
		}
	}
}

func dropUnneeded(s, old *corev1.Service) {
	if needsClusterIP(old) && !needsClusterIP(s) && s.Spec.ClusterIP == old.Spec.ClusterIP {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = "", nil, nil, nil
	}
	if needsClusterIP(old) && !needsClusterIP(s) {
		s.Spec.InternalTrafficPolicy = nil
	}
	if mayHaveNodePorts(old) && !mayHaveNodePorts(s) {
		had := map[int32]bool{}
		for _, p := range old.Spec.Ports {
			had[p.NodePort] = true
		}
		for i := range s.Spec.Ports {
			if had[s.Spec.Ports[i].NodePort] {
				s.Spec.Ports[i].NodePort = 0
			}
		}
	}
	if needsHealthPort(old) && !needsHealthPort(s) && s.Spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort {
		s.Spec.HealthCheckNodePort = 0
	}
	if servesOutside(old) && !servesOutside(s) {
		s.Spec.ExternalTrafficPolicy = ""
	}
	if old.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Spec.AllocateLoadBalancerNodePorts, s.Spec.LoadBalancerClass = nil, nil
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}
