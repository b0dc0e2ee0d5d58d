package endpointslice

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// group is the endpoints that can share slices: of one address family and with the same ports.
type group struct {
	family    discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints map[string]discoveryv1.Endpoint // by pod UID
}

// want works out the endpoints of a Service, by family and ports.
func (c *Controller) want(service *corev1.Service) (map[string]*group, error) {
	groups := map[string]*group{}
	pods, err := c.pods.Pods(service.Namespace).List(labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	for _, family := range families(service, pods) {
		for _, pod := range pods {
			address := addressOf(pod, family)
			if address == "" || !controller.PodServes(pod) {
				continue
			}
			ports := portsOf(pod, service)
			key := groupKey(family, ports)
			if groups[key] == nil {
				groups[key] = &group{family: family, ports: ports, endpoints: map[string]discoveryv1.Endpoint{}}
			}
			groups[key].endpoints[string(pod.UID)] = c.endpoint(service, pod, address)
		}
		if !hasFamily(groups, family) {
			// One empty slice says that the Service is known and has no endpoints.
			groups[groupKey(family, nil)] = &group{family: family}
		}
	}
	return groups, nil
}

func hasFamily(groups map[string]*group, family discoveryv1.AddressType) bool {
	for _, g := range groups {
		if g.family == family {
			return true
		}
	}
	return false
}

func groupKey(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) string {
	sorted := slices.Clone(ports)
	slices.SortFunc(sorted, func(a, b discoveryv1.EndpointPort) int { return cmp.Compare(portText(a), portText(b)) })
	var out strings.Builder
	out.WriteString(string(family))
	for _, port := range sorted {
		out.WriteString(portText(port))
	}
	return out.String()
}

func portText(port discoveryv1.EndpointPort) string {
	text, err := json.Marshal(port)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	return string(text)
}

// families are those of the Service; a headless one without any takes those of its pods.
func families(service *corev1.Service, pods []*corev1.Pod) []discoveryv1.AddressType {
	set := map[discoveryv1.AddressType]bool{}
	for _, family := range service.Spec.IPFamilies {
		if family == corev1.IPv6Protocol {
			set[discoveryv1.AddressTypeIPv6] = true
		} else {
			set[discoveryv1.AddressTypeIPv4] = true
		}
	}
	if len(set) == 0 {
		for _, pod := range pods {
			if ip, err := netip.ParseAddr(pod.Status.PodIP); err == nil && ip.Is6() {
				set[discoveryv1.AddressTypeIPv6] = true
			}
		}
		if ip, err := netip.ParseAddr(service.Spec.ClusterIP); len(set) == 0 || (err == nil && ip.Is4()) {
			set[discoveryv1.AddressTypeIPv4] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func addressOf(pod *corev1.Pod, family discoveryv1.AddressType) string {
	addresses := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		addresses = append(addresses, ip.IP)
	}
	for _, address := range addresses {
		if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() == (family == discoveryv1.AddressTypeIPv6) {
			return address
		}
	}
	return ""
}

// portsOf are the ports of the Service as this pod serves them. Ports that it does not have are left out.
func portsOf(pod *corev1.Pod, service *corev1.Service) []discoveryv1.EndpointPort {
	ports := []discoveryv1.EndpointPort{}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		number, found := controller.ServicePortOnPod(pod, port)
		if !found {
			continue
		}
		ports = append(ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Port: ptr.To(number), Protocol: ptr.To(cmp.Or(port.Protocol, corev1.ProtocolTCP)), AppProtocol: port.AppProtocol})
	}
	return ports
}

// endpoint is one pod. A pod that is being deleted still serves while it is ready, but is not ready for new connections.
func (c *Controller) endpoint(service *corev1.Service, pod *corev1.Pod, address string) discoveryv1.Endpoint {
	serving, terminating := controller.IsPodReady(pod), pod.DeletionTimestamp != nil
	e := discoveryv1.Endpoint{
		Addresses: []string{address},
		Conditions: discoveryv1.EndpointConditions{
			Ready:   ptr.To(service.Spec.PublishNotReadyAddresses || (serving && !terminating)),
			Serving: &serving, Terminating: &terminating,
		},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if name := controller.PublishedHostname(pod, service); name != "" {
		e.Hostname = &name
	}
	if pod.Spec.NodeName == "" {
		return e
	}
	e.NodeName = ptr.To(pod.Spec.NodeName)
	if node, err := c.nodes.Get(pod.Spec.NodeName); err == nil && node.Labels[corev1.LabelTopologyZone] != "" {
		e.Zone = ptr.To(node.Labels[corev1.LabelTopologyZone])
	}
	e.Hints = hints(service, &e)
	return e
}

// hints say who should use the endpoint, where the Service prefers close ones.
func hints(service *corev1.Service, e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	if service.Spec.TrafficDistribution == nil || !*e.Conditions.Ready || e.Zone == nil {
		return nil
	}
	zones := []discoveryv1.ForZone{{Name: *e.Zone}}
	switch *service.Spec.TrafficDistribution {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
		return &discoveryv1.EndpointHints{ForZones: zones}
	case corev1.ServiceTrafficDistributionPreferSameNode:
		return &discoveryv1.EndpointHints{ForZones: zones, ForNodes: []discoveryv1.ForNode{{Name: *e.NodeName}}}
	}
	return nil
}
