package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource/scheduling"
)

const (
	// apiService is the name of the service by which pods find the API server, of its endpoints, and of the network that services get addresses from.
	apiService     = "kubernetes"
	apiServicePort = 443
	skipMirror     = "endpointslice.kubernetes.io/skip-mirror"
)

// ensureSystem makes the objects that are in every cluster. At a restart it reads them and writes nothing.
func (s *Server) ensureSystem(ctx context.Context) error {
	steps := []func(context.Context) error{s.ensureNamespaces, s.ensureClasses, s.ensureServiceCIDR, s.ensureClusterInfo}
	if s.endpoint.IsValid() {
		steps = append(steps, s.ensureService, s.ensureEndpoints, s.ensureSlice)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// objects is the part of a typed client that ensure uses.
type objects[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// ensure returns the object of that name, which it makes when it is not there.
func ensure[T any](ctx context.Context, client objects[T], name string, object T) (T, error) {
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	made, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Another server on the same store was faster.
		return client.Get(ctx, name, metav1.GetOptions{})
	}
	return made, err
}

func (s *Server) ensureNamespaces(ctx context.Context) error {
	for _, name := range systemNamespaces {
		if _, err := ensure(ctx, s.client.CoreV1().Namespaces(), name, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

func (s *Server) ensureClasses(ctx context.Context) error {
	for _, class := range scheduling.SystemClasses() {
		if _, err := ensure(ctx, s.client.SchedulingV1().PriorityClasses(), class.Name, class); err != nil {
			return fmt.Errorf("priority class %s: %w", class.Name, err)
		}
	}
	return nil
}

func (s *Server) ensureServiceCIDR(ctx context.Context) error {
	client := s.client.NetworkingV1().ServiceCIDRs()
	found, err := ensure(ctx, client, apiService, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: apiService}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{s.serviceCIDR.String()}},
	})
	if err == nil && len(found.Status.Conditions) == 0 {
		found.Status.Conditions = []metav1.Condition{{
			Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(), Message: "Kubernetes default Service CIDR is ready",
		}}
		_, err = client.UpdateStatus(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("service network %s: %w", apiService, err)
	}
	return nil
}

// ServiceAddress is the address of Service kubernetes: the first of the services' network.
func ServiceAddress(services netip.Prefix) netip.Addr { return services.Masked().Addr().Next() }

func (s *Server) ensureService(ctx context.Context) error {
	client := s.client.CoreV1().Services(metav1.NamespaceDefault)
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: apiService, Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: ServiceAddress(s.serviceCIDR).String(),
			Ports:     []corev1.ServicePort{{Name: "https", Port: apiServicePort, TargetPort: intstr.FromInt32(int32(s.endpoint.Port()))}},
		},
	}
	_, err := ensure(ctx, client, apiService, want)
	if apierrors.IsInvalid(err) {
		err = s.ensureServiceOnTakenAddress(ctx, want, err)
	}
	if err != nil {
		return fmt.Errorf("service %s: %w", apiService, err)
	}
	return nil
}

// How long another server may take from reserving the address of Service kubernetes to making the Service, and how often this one looks.
const (
	otherServerTime = 3 * time.Second
	otherServerLook = 20 * time.Millisecond
)

// ensureServiceOnTakenAddress: the address is reserved before the Service is there. Another server on the same store is between the two; or one was killed there,
// and the reservation, which nobody uses, is taken back. taken is the error that said so.
func (s *Server) ensureServiceOnTakenAddress(ctx context.Context, want *corev1.Service, taken error) error {
	services := s.client.CoreV1().Services(metav1.NamespaceDefault)
	isMade := func(context.Context) (bool, error) { // not with the context of the wait: its end would look like an error of the server
		_, err := services.Get(ctx, apiService, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	err := wait.PollUntilContextTimeout(ctx, otherServerLook, otherServerTime, true, isMade)
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	addresses := s.client.NetworkingV1().IPAddresses()
	reserved, err := addresses.Get(ctx, want.Spec.ClusterIP, metav1.GetOptions{})
	if err != nil {
		return errors.Join(taken, err)
	}
	if of := reserved.Spec.ParentRef; of == nil || of.Resource != "services" || of.Namespace != metav1.NamespaceDefault || of.Name != apiService {
		return fmt.Errorf("%w: by %+v", taken, of)
	}
	if err := addresses.Delete(ctx, reserved.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(reserved.UID))}); err != nil {
		return err
	}
	_, err = ensure(ctx, services, apiService, want)
	return err
}

func (s *Server) ensureEndpoints(ctx context.Context) error {
	client := s.client.CoreV1().Endpoints(metav1.NamespaceDefault)
	want := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: apiService, Labels: map[string]string{skipMirror: "true"}},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: s.endpoint.Addr().String()}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(s.endpoint.Port()), Protocol: corev1.ProtocolTCP}},
		}},
	}
	found, err := ensure(ctx, client, apiService, want)
	if err == nil && !apiequality.Semantic.DeepEqual(found.Subsets, want.Subsets) {
		found.Subsets = want.Subsets
		_, err = client.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("endpoints %s: %w", apiService, err)
	}
	return nil
}

func (s *Server) ensureSlice(ctx context.Context) error {
	client := s.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: apiService, Labels: map[string]string{discoveryv1.LabelServiceName: apiService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.endpoint.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(s.endpoint.Port())), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	found, err := ensure(ctx, client, apiService, want)
	if err == nil && (!apiequality.Semantic.DeepEqual(found.Endpoints, want.Endpoints) || !apiequality.Semantic.DeepEqual(found.Ports, want.Ports)) {
		found.Endpoints, found.Ports = want.Endpoints, want.Ports
		_, err = client.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("endpoint slice %s: %w", apiService, err)
	}
	return nil
}
