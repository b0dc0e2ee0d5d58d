package relay

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
)

// proxyStorage is pods/proxy: HTTP to a port of a pod. The name in the path is [scheme:]name[:port].
type proxyStorage struct{ pods }

// NewConnectOptions implements rest.Connecter.
func (*proxyStorage) NewConnectOptions() (runtime.Object, bool, string) {
	return &corev1.PodProxyOptions{}, true, "path"
}

// ConnectMethods implements rest.Connecter.
func (*proxyStorage) ConnectMethods() []string {
	return []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
}

// Connect implements rest.Connecter.
func (s *proxyStorage) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(id)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q: want [http:|https:]NAME[:PORT]", id))
	}
	pod, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	host, err := podHost(pod, port)
	if err != nil {
		return nil, err
	}
	if scheme == "" {
		scheme = "http"
	}
	location := &url.URL{Scheme: scheme, Host: host, Path: "/" + strings.TrimPrefix(options.(*corev1.PodProxyOptions).Path, "/")}
	return proxy.NewUpgradeAwareHandler(location, s.nodes.podTransport(), true, false, proxy.NewErrorResponder(responder)), nil
}

// podHost is address and port of the pod; without a port it is the first that a container names.
func podHost(pod *corev1.Pod, port string) (string, error) {
	if pod.Status.PodIP == "" {
		return "", apierrors.NewBadRequest(fmt.Sprintf("pod %s has no address yet (phase %s)", pod.Name, pod.Status.Phase))
	}
	if ip := net.ParseIP(pod.Status.PodIP); ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() {
		return "", apierrors.NewBadRequest(fmt.Sprintf("address %q of pod %s is not allowed", pod.Status.PodIP, pod.Name))
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
