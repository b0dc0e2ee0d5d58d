package endpointslicemirroring

import (
	"encoding/json"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// perSubset is how many addresses of a subset are mirrored at most, as in Kubernetes.
const perSubset = 1000

// want returns the slices that the Endpoints stand for, by their group.
func (c *Controller) want(endpoints *corev1.Endpoints) map[string]*discoveryv1.EndpointSlice {
	out := map[string]*discoveryv1.EndpointSlice{}
	invalid, skipped := 0, 0
	for _, subset := range endpoints.Subsets {
		ports, taken := slicePorts(subset.Ports), 0
		add := func(address corev1.EndpointAddress, ready bool) {
			ip, err := netip.ParseAddr(address.IP)
			switch {
			case err != nil:
				invalid++
				return
			case taken == perSubset:
				skipped++
				return
			}
			taken++
			s := newSlice(endpoints, family(ip), ports)
			if known := out[groupKey(s)]; known != nil {
				s = known
			}
			out[groupKey(s)] = s
			s.Endpoints = append(s.Endpoints, endpoint(address, ip, ready))
		}
		for _, address := range subset.Addresses {
			add(address, true)
		}
		for _, address := range subset.NotReadyAddresses {
			add(address, false)
		}
	}
	if invalid > 0 {
		c.recorder.Eventf(endpoints, corev1.EventTypeWarning, "InvalidIPAddress", "Skipped %d invalid IP addresses when mirroring to EndpointSlices", invalid)
	}
	if skipped > 0 {
		c.recorder.Eventf(endpoints, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", perSubset, skipped)
	}
	return out
}

func family(ip netip.Addr) discoveryv1.AddressType {
	if ip.Unmap().Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

func endpoint(address corev1.EndpointAddress, ip netip.Addr, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{ip.Unmap().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: address.TargetRef, NodeName: address.NodeName,
	}
	if address.Hostname != "" {
		e.Hostname = &address.Hostname
	}
	return e
}

func slicePorts(ports []corev1.EndpointPort) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for _, p := range ports {
		out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
	}
	return out
}

// groupKey tells slices apart by what all endpoints of one have in common. A missing name or protocol is what the API server makes of it.
func groupKey(s *discoveryv1.EndpointSlice) string {
	key := []any{s.AddressType}
	for _, p := range s.Ports {
		key = append(key, ptr.Deref(p.Name, ""), ptr.Deref(p.Port, 0), ptr.Deref(p.Protocol, corev1.ProtocolTCP), ptr.Deref(p.AppProtocol, ""))
	}
	text, err := json.Marshal(key)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(text)
}

func newSlice(endpoints *corev1.Endpoints, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: endpoints.Namespace, GenerateName: endpoints.Name + "-", Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(endpoints, corev1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: family, Ports: ports,
	}
	maps.Copy(s.Labels, endpoints.Labels)
	s.Labels[discoveryv1.LabelServiceName], s.Labels[discoveryv1.LabelManagedBy] = endpoints.Name, ManagedBy
	maps.Copy(s.Annotations, endpoints.Annotations)
	delete(s.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(s.Annotations, corev1.LastAppliedConfigAnnotation)
	return s
}
