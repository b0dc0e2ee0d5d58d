package apiserver_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver"
)

// proxied starts an API whose way into the cluster's network leads to one server, which says what address was dialled and what was asked.
func proxied(t *testing.T) *api {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s?%s", r.Method, r.URL.Path, r.URL.RawQuery)
	}))
	t.Cleanup(backend.Close)
	return startAPI(t, func(config *apiserver.Config) {
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !strings.HasPrefix(address, "10.1.0.2:") {
				return nil, fmt.Errorf("nothing is at %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, backend.Listener.Addr().String())
		}
	})
}

func TestProxy(t *testing.T) {
	a := proxied(t)
	ctx := t.Context()
	must2 := func(_ any, err error) { t.Helper(); must(t, err) }
	pod, err := a.client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}},
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Status.PodIP = "10.1.0.2"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	must2(a.client.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
	must2(a.client.CoreV1().Services("default").Create(ctx, newService("web", func(s *corev1.ServiceSpec) {
		s.Ports = []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "metrics", Port: 9090}}
	}), metav1.CreateOptions{}))
	must2(a.client.CoreV1().Services("default").Create(ctx, newService("empty", nil), metav1.CreateOptions{}))
	must2(a.client.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.1.0.9"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			{Addresses: []string{"10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}},
		},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080)}},
	}, metav1.CreateOptions{}))
	must2(a.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.2"}}},
	}, metav1.CreateOptions{}))

	for _, test := range []struct{ method, path, want, message string }{
		{"GET", "/api/v1/namespaces/default/pods/web/proxy/a/b?c=d", "GET /a/b?c=d", ""},
		{"POST", "/api/v1/namespaces/default/pods/http:web:99/proxy/", "POST /?", ""},
		{"GET", "/api/v1/namespaces/default/services/web:http/proxy/x", "GET /x?", ""},
		{"PUT", "/api/v1/namespaces/default/services/http:web:80/proxy/x", "PUT /x?", ""},
		{"GET", "/api/v1/namespaces/default/services/web:metrics/proxy/", "", `no endpoints available for service \"web\"`},
		{"GET", "/api/v1/namespaces/default/services/web:81/proxy/", "", `no service port \"81\" found for service \"web\"`},
		{"GET", "/api/v1/namespaces/default/services/empty/proxy/", "", `no endpoints available for service \"empty\"`},
		{"GET", "/api/v1/namespaces/default/services/none/proxy/", "", `services \"none\" not found`},
		{"GET", "/api/v1/nodes/n:8080/proxy/stats", "GET /stats?", ""},
		{"GET", "/api/v1/nodes/ftp:n:8080/proxy/stats", "", "invalid node request"},
	} {
		body, err := a.client.CoreV1().RESTClient().Verb(test.method).RequestURI(test.path).DoRaw(ctx)
		got := string(body)
		if test.message != "" {
			if err == nil || !strings.Contains(got+err.Error(), test.message) {
				t.Errorf("%s %s: %s, %v; want an error with %q", test.method, test.path, got, err, test.message)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s %s: %q, %v; want %q", test.method, test.path, got, err, test.want)
		}
	}
	// The node's own API is asked by TLS with the API server's certificate; what is there does not speak it.
	_, err = a.client.CoreV1().RESTClient().Get().RequestURI("/api/v1/nodes/n/proxy/stats").DoRaw(ctx)
	if err == nil || apierrors.IsNotFound(err) {
		t.Errorf("the node's API without TLS: %v, want an error of the connection", err)
	}
}
