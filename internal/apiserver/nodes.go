package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
)

// nodes is how requests that end at a node, a pod or a service get there.
func (s *Server) nodes(config Config) (relay.Nodes, error) {
	tls, err := clientTLS(config)
	return relay.Nodes{
		Dial: config.Dial,
		TLS:  tls,
		Get: func(ctx context.Context, name string) (*corev1.Node, error) {
			return s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		},
		Slices: s.endpointSlices,
	}, err
}

func (s *Server) endpointSlices(ctx context.Context, namespace, service string) ([]*discoveryv1.EndpointSlice, error) {
	list, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}).String(),
		// What the cache has is good enough to find an endpoint.
		ResourceVersion: "0",
	})
	if err != nil {
		return nil, err
	}
	var out []*discoveryv1.EndpointSlice
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}
