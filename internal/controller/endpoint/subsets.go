package endpoint

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// most is how many addresses an Endpoints object holds. It is one object: each change sends all of it to everybody.
const most = 1000

// endpointsOf is the Endpoints object of a Service: a subset for each set of ports, addresses in order.
func endpointsOf(service *corev1.Service, pods []*corev1.Pod) *corev1.Endpoints {
	out := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service.Name, Namespace: service.Namespace, Labels: maps.Clone(service.Labels)}}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[managedByLabel] = managedBy
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Labels[corev1.IsHeadlessService] = ""
	}
	pods = slices.Clone(pods)
	// The ready ones come first: they are what must not be cut off.
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(-compareBool(controller.IsPodReady(a), controller.IsPodReady(b)), cmp.Compare(a.Status.PodIP, b.Status.PodIP), cmp.Compare(a.Name, b.Name))
	})
	subsets := map[string]*corev1.EndpointSubset{}
	count := 0
	for _, pod := range pods {
		if !controller.PodServes(pod) || (pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses) {
			continue
		}
		if count++; count > most {
			out.Annotations = map[string]string{corev1.EndpointsOverCapacity: "truncated"}
			break
		}
		addPod(subsets, service, pod)
	}
	for _, key := range slices.Sorted(maps.Keys(subsets)) {
		out.Subsets = append(out.Subsets, *subsets[key])
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func addPod(subsets map[string]*corev1.EndpointSubset, service *corev1.Service, pod *corev1.Pod) {
	ports := portsOf(service, pod)
	if len(service.Spec.Ports) > 0 && len(ports) == 0 {
		return
	}
	text, err := json.Marshal(ports)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	subset := subsets[string(text)]
	if subset == nil {
		subset = &corev1.EndpointSubset{Ports: ports}
		subsets[string(text)] = subset
	}
	address := corev1.EndpointAddress{
		IP: pod.Status.PodIP, Hostname: controller.PublishedHostname(pod, service),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.NodeName != "" {
		address.NodeName = &pod.Spec.NodeName
	}
	if controller.IsPodReady(pod) || service.Spec.PublishNotReadyAddresses {
		subset.Addresses = append(subset.Addresses, address)
	} else {
		subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
	}
}

func portsOf(service *corev1.Service, pod *corev1.Pod) []corev1.EndpointPort {
	var ports []corev1.EndpointPort
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if number, found := controller.ServicePortOnPod(pod, port); found {
			ports = append(ports, corev1.EndpointPort{Name: port.Name, Port: number, Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP), AppProtocol: port.AppProtocol})
		}
	}
	return ports
}
