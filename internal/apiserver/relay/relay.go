// Package relay serves the requests of the API that end at a pod or at its node: logs, exec, attach, port-forward and proxy. The API server looks up
// where the pod is, opens a connection from inside the cluster's network, and passes bytes.
package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Nodes is how the API server reaches nodes and pods.
type Nodes struct {
	// Dial connects from inside the cluster's network; addresses are IP:port.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS has the API server's client certificate and the authority of the nodes' serving certificates.
	TLS *tls.Config
	// Get returns a node by its name.
	Get func(ctx context.Context, name string) (*corev1.Node, error)
	// Slices lists the endpoints of a service.
	Slices Slices
}

// DefaultNodePort is where a node serves its API unless its status says otherwise.
const DefaultNodePort = 10250

func (n Nodes) nodeTransport() http.RoundTripper {
	return &http.Transport{DialContext: n.Dial, TLSClientConfig: n.TLS, DisableKeepAlives: true}
}

// podTransport does not check certificates: a pod's own are for its clients to trust, and the proxy is not one of them.
func (n Nodes) podTransport() http.RoundTripper {
	return &http.Transport{
		DialContext:         n.Dial,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
	}
}

// location is the URL of path on the API of the node that has the pod.
func (n Nodes) location(ctx context.Context, pod *corev1.Pod, query url.Values, path ...string) (*url.URL, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	node, err := n.Get(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	host, err := address(node)
	if err != nil {
		return nil, err
	}
	u := &url.URL{Scheme: "https", Host: host}
	u = u.JoinPath(path...)
	u.RawQuery = query.Encode()
	return u, nil
}

func address(node *corev1.Node) (string, error) {
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port == 0 {
		port = DefaultNodePort
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return net.JoinHostPort(a.Address, strconv.Itoa(port)), nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("node %s has no InternalIP in its status yet: it has not reported", node.Name))
}

// pods reads pods from the registry that it shares.
type pods struct {
	store *genericregistry.Store
	nodes Nodes
}

func (p pods) get(ctx context.Context, name string) (*corev1.Pod, error) {
	obj, err := p.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

// New implements rest.Storage.
func (pods) New() runtime.Object { return &corev1.Pod{} }

// Destroy leaves the storage to the resource itself, which shares it.
func (pods) Destroy() {}

// PodStorage returns the sub-resources of pods that are relayed.
func PodStorage(store *genericregistry.Store, nodes Nodes) map[string]rest.Storage {
	p := pods{store, nodes}
	return map[string]rest.Storage{
		"log":         &logStorage{p},
		"exec":        &streamStorage{pods: p, options: func() runtime.Object { return &corev1.PodExecOptions{} }, target: execTarget},
		"attach":      &streamStorage{pods: p, options: func() runtime.Object { return &corev1.PodAttachOptions{} }, target: attachTarget},
		"portforward": &streamStorage{pods: p, options: func() runtime.Object { return &corev1.PodPortForwardOptions{} }, target: portForwardTarget},
		"proxy":       PodProxy(store, nodes),
	}
}
