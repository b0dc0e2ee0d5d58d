package relay

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/proxy"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// proxyStorage is a sub-resource by which HTTP requests go to a port of something. The name in the path is [scheme:]name[:port].
type proxyStorage struct {
	// options makes the options that the sub-resource takes; path reads the path out of them.
	options func() runtime.Object
	path    func(runtime.Object) string
	// find tells where the thing listens, and how to get there.
	find func(ctx context.Context, id string) (*url.URL, http.RoundTripper, error)
}

// New implements rest.Storage: in discovery, and to admission, what is sent to such a sub-resource are its options.
func (s *proxyStorage) New() runtime.Object { return s.options() }

// Destroy leaves the storage to the resource itself, which shares it.
func (*proxyStorage) Destroy() {}

// NewConnectOptions implements rest.Connecter.
func (s *proxyStorage) NewConnectOptions() (runtime.Object, bool, string) {
	return s.options(), true, "path"
}

// ConnectMethods implements rest.Connecter.
func (*proxyStorage) ConnectMethods() []string {
	return []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
}

// Connect implements rest.Connecter.
func (s *proxyStorage) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	location, transport, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	location.Path = "/" + strings.TrimPrefix(s.path(options), "/")
	return proxy.NewUpgradeAwareHandler(location, transport, true, false, proxy.NewErrorResponder(responder)), nil
}

// PodProxy is pods/proxy.
func PodProxy(store *genericregistry.Store, nodes Nodes) rest.Storage {
	return &proxyStorage{
		options: func() runtime.Object { return &corev1.PodProxyOptions{} },
		path:    func(o runtime.Object) string { return o.(*corev1.PodProxyOptions).Path },
		find: func(ctx context.Context, id string) (*url.URL, http.RoundTripper, error) {
			location, err := findPod(ctx, store, id)
			return location, nodes.podTransport(), err
		},
	}
}

// NodeProxy is nodes/proxy. Without a port it leads to the node's API, with the API server's own certificate.
func NodeProxy(store *genericregistry.Store, nodes Nodes) rest.Storage {
	return &proxyStorage{
		options: func() runtime.Object { return &corev1.NodeProxyOptions{} },
		path:    func(o runtime.Object) string { return o.(*corev1.NodeProxyOptions).Path },
		find: func(ctx context.Context, id string) (*url.URL, http.RoundTripper, error) {
			location, own, err := findNode(ctx, store, id)
			if own {
				return location, nodes.nodeTransport(), err
			}
			return location, nodes.podTransport(), err
		},
	}
}

// ServiceProxy is services/proxy: it leads to one of the service's ready endpoints.
func ServiceProxy(store *genericregistry.Store, nodes Nodes) rest.Storage {
	return &proxyStorage{
		options: func() runtime.Object { return &corev1.ServiceProxyOptions{} },
		path:    func(o runtime.Object) string { return o.(*corev1.ServiceProxyOptions).Path },
		find: func(ctx context.Context, id string) (*url.URL, http.RoundTripper, error) {
			location, err := findEndpoint(ctx, store, nodes.Slices, id)
			return location, nodes.podTransport(), err
		},
	}
}
