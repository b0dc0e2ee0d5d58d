// Package webhook is the way from the API server to webhooks: those of admission and those that convert custom resources.
//
// A webhook that is a service of the cluster is called at one of the service's ready endpoints, by a connection that begins inside the cluster's network: no service
// address is needed for it, so that it works where nothing routes such addresses. One that is named by URL is called from where the server runs, which is where a developer's
// webhook is.
package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// resolveTimeout bounds how long it takes to find the endpoint of a service; the answers come from the server's own caches.
const resolveTimeout = 10 * time.Second

// Services finds and reaches the services that webhooks are behind. It implements webhook.ServiceResolver.
type Services struct {
	Client kubernetes.Interface
	// Dial connects from inside the cluster's network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// ResolveEndpoint implements webhook.ServiceResolver.
func (s Services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	service, err := s.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	portName, err := portName(service, port)
	if err != nil {
		return nil, err
	}
	slices, err := s.slices(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	family := corev1.IPFamilyUnknown
	if len(service.Spec.IPFamilies) > 0 {
		family = service.Spec.IPFamilies[0]
	}
	host, err := utilproxy.RandomEndpoint(name, slices, portName, family, nil)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: host}, nil
}

func (s Services) slices(ctx context.Context, namespace, service string) ([]*discoveryv1.EndpointSlice, error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}).String()
	list, err := s.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

func portName(service *corev1.Service, port int32) (string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "", fmt.Errorf("service %s/%s is of type ExternalName and has no endpoints by which a webhook could be called: name it by clientConfig.url", service.Namespace, service.Name)
	}
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return p.Name, nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", port, service.Name))
}

// Route is a webhook.AuthenticationInfoResolverWrapper: it makes calls of services go inside the cluster's network.
func (s Services) Route(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: delegate.ClientConfigFor,
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			c, err := delegate.ClientConfigForService(name, namespace, port)
			if err != nil {
				return nil, err
			}
			c.Dial = s.Dial
			// The name of a service means nothing to a proxy.
			c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
			return c, nil
		},
	}
}
