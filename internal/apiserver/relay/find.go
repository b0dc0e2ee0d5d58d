package relay

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	utilproxy "k8s.io/apiserver/pkg/util/proxy"
)

// target is what the name in the path of a proxy request says: [scheme:]name[:port].
type target struct{ scheme, name, port string }

func parseTarget(kind, id string) (target, error) {
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(id)
	if !ok {
		return target{}, apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q: want [http:|https:]NAME[:PORT]", kind, id))
	}
	return target{scheme, name, port}, nil
}

// lookup finds the object whose name is in the path.
func lookup[T runtime.Object](ctx context.Context, store *genericregistry.Store, kind, id string) (t target, object T, err error) {
	if t, err = parseTarget(kind, id); err != nil {
		return t, object, err
	}
	found, err := store.Get(ctx, t.name, &metav1.GetOptions{})
	if err != nil {
		return t, object, err
	}
	return t, found.(T), nil
}

// url is the location of host, by plain HTTP unless the target says otherwise.
func (t target) url(host string) *url.URL {
	if t.scheme == "" {
		t.scheme = "http"
	}
	return &url.URL{Scheme: t.scheme, Host: host}
}

// allowed refuses addresses by which a request would reach the API server's own machine.
func allowed(of, address string) error {
	ip := net.ParseIP(address)
	if ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsUnspecified() {
		return apierrors.NewBadRequest(fmt.Sprintf("address %q of %s is not allowed", address, of))
	}
	return nil
}

func findPod(ctx context.Context, store *genericregistry.Store, id string) (*url.URL, error) {
	t, pod, err := lookup[*corev1.Pod](ctx, store, "pod", id)
	if err != nil {
		return nil, err
	}
	host, err := podHost(pod, t.port)
	return t.url(host), err
}

// podHost is address and port of the pod; without a port it is the first that a container names.
func podHost(pod *corev1.Pod, port string) (string, error) {
	if pod.Status.PodIP == "" {
		return "", apierrors.NewBadRequest(fmt.Sprintf("pod %s has no address yet (phase %s)", pod.Name, pod.Status.Phase))
	}
	if err := allowed("pod "+pod.Name, pod.Status.PodIP); err != nil {
		return "", err
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if port == "" || p.Name != "" && p.Name == port {
				port = strconv.Itoa(int(p.ContainerPort))
			}
		}
	}
	if port == "" {
		return pod.Status.PodIP, nil
	}
	return net.JoinHostPort(pod.Status.PodIP, port), nil
}

// findNode also tells whether the location is the node's own API.
func findNode(ctx context.Context, store *genericregistry.Store, id string) (location *url.URL, own bool, err error) {
	t, node, err := lookup[*corev1.Node](ctx, store, "node", id)
	if err != nil {
		return nil, false, err
	}
	host, err := address(node)
	if err != nil {
		return nil, false, err
	}
	ip, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, false, err
	}
	if t.port == "" || t.port == port {
		return &url.URL{Scheme: "https", Host: host}, true, nil
	}
	return t.url(net.JoinHostPort(ip, t.port)), false, allowed("node "+t.name, ip)
}

// Slices lists the EndpointSlices of a service.
type Slices func(ctx context.Context, namespace, service string) ([]*discoveryv1.EndpointSlice, error)

func findEndpoint(ctx context.Context, store *genericregistry.Store, slices Slices, id string) (*url.URL, error) {
	t, service, err := lookup[*corev1.Service](ctx, store, "service", id)
	if err != nil {
		return nil, err
	}
	port, err := servicePort(service, t.port)
	if err != nil {
		return nil, err
	}
	found, err := slices(ctx, genericrequest.NamespaceValue(ctx), t.name)
	if err != nil {
		return nil, err
	}
	host, err := utilproxy.RandomEndpoint(t.name, found, port, corev1.IPv4Protocol, func(e *discoveryv1.Endpoint) bool {
		return len(e.Addresses) > 0 && allowed("endpoint", e.Addresses[0]) == nil
	})
	return t.url(host), err
}

// servicePort is the name of the service's port that is asked for by number or by name; a service with one port need not be asked for it.
func servicePort(service *corev1.Service, asked string) (string, error) {
	for _, p := range service.Spec.Ports {
		if asked == "" && len(service.Spec.Ports) == 1 || asked == strconv.Itoa(int(p.Port)) || asked != "" && asked == p.Name {
			return p.Name, nil
		}
	}
	if asked == "" {
		return "", nil
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %q found for service %q", asked, service.Name))
}
