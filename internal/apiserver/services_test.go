package apiserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

func newService(name string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// addresses are the names of all IPAddresses.
func addresses(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	list, err := client.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := map[string]string{}
	for _, a := range list.Items {
		out[a.Name] = a.Spec.ParentRef.Name
	}
	return out
}

func TestServiceAllocation(t *testing.T) {
	a := startAPI(t)
	services := a.client.CoreV1().Services("default")
	create := func(s *corev1.Service, options metav1.CreateOptions) (*corev1.Service, error) {
		return services.Create(t.Context(), s, options)
	}

	one, err := create(newService("one", nil), metav1.CreateOptions{})
	must(t, err)
	if held := addresses(t, a.client); len(held) != 1 || held[one.Spec.ClusterIP] != "one" {
		t.Fatalf("service has %s, taken are %v", one.Spec.ClusterIP, held)
	}

	t.Run("an address that is taken", func(t *testing.T) {
		_, err := create(newService("two", func(s *corev1.ServiceSpec) { s.ClusterIP = one.Spec.ClusterIP }), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "provided IP is already allocated") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an address from elsewhere", func(t *testing.T) {
		_, err := create(newService("two", func(s *corev1.ServiceSpec) { s.ClusterIP = "192.168.1.1" }), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "not in the valid range") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what fails gives back what it took", func(t *testing.T) {
		before := addresses(t, a.client)
		_, err := create(newService("bad", func(s *corev1.ServiceSpec) {
			s.Ports[0].Port = 70000
			s.Type = corev1.ServiceTypeNodePort
			s.Ports[0].NodePort = 30100
		}), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Fatalf("got %v", err)
		}
		if _, err := create(newService("one", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Fatalf("got %v", err)
		}
		if after := addresses(t, a.client); len(after) != len(before) {
			t.Errorf("before %v, after %v", before, after)
		}
		good, err := create(newService("good", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort; s.Ports[0].NodePort = 30100 }), metav1.CreateOptions{})
		must(t, err)
		must(t, services.Delete(t.Context(), good.Name, metav1.DeleteOptions{}))
	})
	t.Run("a dry run takes nothing", func(t *testing.T) {
		before := addresses(t, a.client)
		dry, err := create(newService("dry", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		must(t, err)
		if dry.Spec.ClusterIP == "" || dry.Spec.Ports[0].NodePort == 0 || len(addresses(t, a.client)) != len(before) {
			t.Errorf("got %s and %d", dry.Spec.ClusterIP, dry.Spec.Ports[0].NodePort)
		}
	})
	t.Run("deletion gives back", func(t *testing.T) {
		must(t, services.Delete(t.Context(), "one", metav1.DeleteOptions{}))
		if held := addresses(t, a.client); len(held) != 0 {
			t.Errorf("taken are %v", held)
		}
		_, err := create(newService("again", func(s *corev1.ServiceSpec) { s.ClusterIP = one.Spec.ClusterIP }), metav1.CreateOptions{})
		must(t, err)
	})
	t.Run("headless", func(t *testing.T) {
		s, err := create(newService("headless", func(s *corev1.ServiceSpec) { s.ClusterIP = "None" }), metav1.CreateOptions{})
		must(t, err)
		if len(s.Spec.ClusterIPs) != 1 || s.Spec.ClusterIPs[0] != "None" {
			t.Errorf("clusterIPs are %v", s.Spec.ClusterIPs)
		}
	})
	t.Run("another network", func(t *testing.T) {
		_, err := a.client.NetworkingV1().ServiceCIDRs().Create(t.Context(), &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.77.0.0/24"}},
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = create(newService("far", func(s *corev1.ServiceSpec) { s.ClusterIP = "10.77.0.5" }), metav1.CreateOptions{})
		must(t, err)
	})
}

// TestServiceTypes walks a service through its types by patches that name the type only.
func TestServiceTypes(t *testing.T) {
	a := startAPI(t)
	services := a.client.CoreV1().Services("default")
	s, err := services.Create(t.Context(), newService("s", nil), metav1.CreateOptions{})
	must(t, err)
	address := s.Spec.ClusterIP
	patch := func(text string) *corev1.Service {
		t.Helper()
		s, err := services.Patch(t.Context(), "s", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		must(t, err)
		return s
	}
	s = patch(`{"spec": {"type": "NodePort"}}`)
	port := s.Spec.Ports[0].NodePort
	if port < 30000 || port > 32767 || s.Spec.ClusterIP != address || s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyCluster {
		t.Fatalf("NodePort: %+v", s.Spec)
	}
	s = patch(`{"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}`)
	if s.Spec.Ports[0].NodePort != port || s.Spec.Ports[1].NodePort == 0 || s.Spec.Ports[1].NodePort == port {
		t.Fatalf("two ports: %+v", s.Spec.Ports)
	}
	s = patch(`{"spec": {"type": "ClusterIP"}}`)
	if s.Spec.Ports[0].NodePort != 0 || s.Spec.ExternalTrafficPolicy != "" || s.Spec.ClusterIP != address {
		t.Fatalf("ClusterIP: %+v", s.Spec)
	}
	// The port is free again.
	other, err := services.Create(t.Context(), newService("other", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort; s.Ports[0].NodePort = port }), metav1.CreateOptions{})
	must(t, err)
	if other.Spec.Ports[0].NodePort != port {
		t.Errorf("node port %d, want %d", other.Spec.Ports[0].NodePort, port)
	}
	s = patch(`{"spec": {"type": "ExternalName", "externalName": "a.io"}}`)
	if s.Spec.ClusterIP != "" || len(s.Spec.ClusterIPs) != 0 {
		t.Fatalf("ExternalName: %+v", s.Spec)
	}
	if _, held := addresses(t, a.client)[address]; held {
		t.Errorf("%s is still taken", address)
	}
	s = patch(`{"spec": {"type": "LoadBalancer", "externalName": null, "externalTrafficPolicy": "Local"}}`)
	if s.Spec.ClusterIP == "" || s.Spec.HealthCheckNodePort == 0 || s.Spec.Ports[0].NodePort == 0 {
		t.Fatalf("LoadBalancer: %+v", s.Spec)
	}
	_, err = services.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"spec": {"clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "may not change once set") {
		t.Errorf("changing the address: %v", err)
	}
	if _, held := addresses(t, a.client)["10.96.0.77"]; held {
		t.Error("an update that failed keeps an address")
	}
}

// TestServiceRace lets two servers on one store make services at once: no address and no port is handed out twice.
func TestServiceRace(t *testing.T) {
	const each = 30
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	servers := []*api{startOn(t, s, authority), startOn(t, s, authority)}
	var wg sync.WaitGroup
	errs := make(chan error, 2*each)
	for n, server := range servers {
		for i := range each {
			wg.Go(func() { errs <- makeNodePort(t.Context(), server.client, fmt.Sprintf("s-%d-%d", n, i)) })
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	list, err := servers[0].client.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ips, ports := map[string]string{}, map[int32]string{}
	for _, s := range list.Items {
		if s.Spec.Type != corev1.ServiceTypeNodePort {
			continue
		}
		if other := ips[s.Spec.ClusterIP]; other != "" {
			t.Errorf("%s and %s have %s", other, s.Name, s.Spec.ClusterIP)
		}
		if other := ports[s.Spec.Ports[0].NodePort]; other != "" {
			t.Errorf("%s and %s have port %d", other, s.Name, s.Spec.Ports[0].NodePort)
		}
		ips[s.Spec.ClusterIP], ports[s.Spec.Ports[0].NodePort] = s.Name, s.Name
	}
	if len(ips) != 2*each {
		t.Errorf("%d services", len(ips))
	}
}

func makeNodePort(ctx context.Context, client kubernetes.Interface, name string) error {
	s := newService(name, func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
	_, err := client.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{})
	return err
}
