package apiserver_test

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver"
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// systemVersions are the objects that every cluster has, with their resource versions.
func systemVersions(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	out := map[string]string{}
	note := func(name string, o metav1.Object, err error) {
		t.Helper()
		must(t, err)
		out[name] = o.GetResourceVersion()
	}
	get := metav1.GetOptions{}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		o, err := client.CoreV1().Namespaces().Get(t.Context(), name, get)
		note(name, o, err)
	}
	for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
		o, err := client.SchedulingV1().PriorityClasses().Get(t.Context(), name, get)
		note(name, o, err)
	}
	network, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", get)
	note("servicecidr", network, err)
	service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", get)
	note("service", service, err)
	endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", get)
	note("endpoints", endpoints, err)
	slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", get)
	note("slice", slice, err)
	info, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", get)
	note("cluster-info", info, err)
	return out
}

// TestReservedAddressWithoutService: a server that was killed between the reservation of the address and the making of Service kubernetes does not keep the next
// one from starting; an address that another object has does.
func TestReservedAddressWithoutService(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	killed := startOn(t, s, authority)
	_, err = killed.client.NetworkingV1().IPAddresses().Create(t.Context(), &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: "10.96.0.1"},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "kubernetes"}},
	}, metav1.CreateOptions{})
	must(t, err)
	next := startOn(t, s, authority, func(c *apiserver.Config) { c.Endpoint = netip.MustParseAddrPort("172.30.0.1:6443") })
	systemVersions(t, next.client)
	address, err := next.client.NetworkingV1().IPAddresses().Get(t.Context(), "10.96.0.1", metav1.GetOptions{})
	must(t, err)
	if address.Labels[networkingv1.LabelManagedBy] == "" {
		t.Errorf("the reservation is not the new one: %+v", address)
	}
}

func TestSystemObjects(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	at := func(endpoint string) func(*apiserver.Config) {
		return func(c *apiserver.Config) {
			c.Endpoint, c.Advertise = netip.MustParseAddrPort(endpoint), "192.0.2.1:6443"
		}
	}
	first := startOn(t, s, authority, at("172.30.0.1:6443"))
	made := systemVersions(t, first.client)
	service, err := first.client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	must(t, err)
	if service.Spec.ClusterIP != "10.96.0.1" || service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].TargetPort.IntValue() != 6443 {
		t.Errorf("service kubernetes: %+v", service.Spec)
	}
	other, err := first.client.CoreV1().Services("default").Create(t.Context(), newService("other", nil), metav1.CreateOptions{})
	must(t, err)
	if other.Spec.ClusterIP == service.Spec.ClusterIP || !apiserver.DefaultServiceCIDR.Contains(netip.MustParseAddr(other.Spec.ClusterIP)) {
		t.Errorf("another service got %s", other.Spec.ClusterIP)
	}

	again := startOn(t, s, authority, at("172.30.0.1:6443"))
	for name, version := range systemVersions(t, again.client) {
		if made[name] != version {
			t.Errorf("a second start wrote %s", name)
		}
	}

	moved := startOn(t, s, authority, at("172.30.0.9:6443"))
	endpoints, err := moved.client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	must(t, err)
	slice, err := moved.client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	must(t, err)
	if got := endpoints.Subsets[0].Addresses[0].IP + " " + slice.Endpoints[0].Addresses[0]; got != "172.30.0.9 172.30.0.9" {
		t.Errorf("endpoints after the address changed: %s", got)
	}
}
