package core

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
)

// allocation gives services their addresses and node ports before they are stored, and takes back what was given when storing fails or when the service goes.
type allocation struct {
	addresses *allocate.Addresses
	ports     *allocate.Ports
}

// installAllocation hooks the allocation into the registry of services.
func installAllocation(env resource.Environment, store *genericregistry.Store, options Options) error {
	addresses, err := options.addresses(env)
	if err != nil {
		return err
	}
	ports, err := allocate.NewPorts(env.Options, options.NodePorts)
	if err != nil {
		return fmt.Errorf("storage of node ports: %w", err)
	}
	a := &allocation{addresses: addresses, ports: ports}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, o *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return a.change(ctx, obj.(*corev1.Service), &corev1.Service{}, dryrun.IsDryRun(o.DryRun))
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, o *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return a.change(ctx, obj.(*corev1.Service), old.(*corev1.Service), dryrun.IsDryRun(o.DryRun))
	}
	store.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) {
		if o == nil || !dryrun.IsDryRun(o.DryRun) {
			a.release(context.Background(), obj.(*corev1.Service), heldPorts(obj.(*corev1.Service)), heldAddresses(obj.(*corev1.Service)))
		}
	}
	destroy := store.DestroyFunc
	store.DestroyFunc = func() { ports.Destroy(); destroy() }
	return nil
}

// change gives the service what it needs beyond what it had as old. The function that it returns settles the change: when the service was stored, what only the
// old one had is released, else what was taken for the new one.
func (a *allocation) change(ctx context.Context, s, old *corev1.Service, dryRun bool) (genericregistry.FinishFunc, error) {
	if err := setFamilies(s); err != nil {
		return nil, err
	}
	hadAddresses, hadPorts := heldAddresses(old), heldPorts(old)
	if err := a.giveAddress(ctx, s, hadAddresses, dryRun); err != nil {
		return nil, err
	}
	newAddresses := without(heldAddresses(s), hadAddresses)
	if err := a.givePorts(ctx, s, hadPorts, dryRun); err != nil {
		a.releaseUnless(ctx, dryRun, s, nil, newAddresses)
		return nil, err
	}
	newPorts := without(heldPorts(s), hadPorts)
	goneAddresses, gonePorts := without(hadAddresses, heldAddresses(s)), without(hadPorts, heldPorts(s))
	return func(ctx context.Context, stored bool) {
		if stored {
			a.releaseUnless(ctx, dryRun, s, gonePorts, goneAddresses)
			return
		}
		a.releaseUnless(ctx, dryRun, s, newPorts, newAddresses)
	}, nil
}

// setFamilies says what the cluster has: IPv4. A service without selector may name any, since its endpoints are not the cluster's.
func setFamilies(s *corev1.Service) error {
	if !needsClusterIP(s) {
		return nil
	}
	spec := &s.Spec
	free := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
		if free {
			spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		if free && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
			spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
		}
	}
	if free {
		return nil
	}
	var errs field.ErrorList
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilyPolicy"), *spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	if slices.Contains(spec.IPFamilies, corev1.IPv6Protocol) {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(0), corev1.IPv6Protocol, "not configured on this cluster"))
	}
	if len(errs) > 0 {
		return invalidService(s, errs)
	}
	return nil
}

func (a *allocation) giveAddress(ctx context.Context, s *corev1.Service, had []netip.Addr, dryRun bool) error {
	if !needsClusterIP(s) || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	if s.Spec.ClusterIP == "" {
		address, err := a.addresses.Next(ctx, s, dryRun)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", err))
		}
		s.Spec.ClusterIP, s.Spec.ClusterIPs = address.String(), []string{address.String()}
		return nil
	}
	s.Spec.ClusterIPs = agreeClusterIPs(s.Spec.ClusterIP, s.Spec.ClusterIPs)
	for i, address := range heldAddresses(s) {
		if slices.Contains(had, address) {
			continue
		}
		if err := a.addresses.Take(ctx, s, address, dryRun); err != nil {
			return invalidService(s, field.ErrorList{field.Invalid(specPath.Child("clusterIPs").Index(i), s.Spec.ClusterIPs, addressProblem(err))})
		}
	}
	return nil
}

func addressProblem(err error) string {
	if apierrors.IsAlreadyExists(err) {
		return "failed to allocate IP: provided IP is already allocated"
	}
	return "failed to allocate IP: " + err.Error()
}

func (a *allocation) givePorts(ctx context.Context, s *corev1.Service, had []int32, dryRun bool) error {
	// Ports of several protocols may share one node port, so numbers are counted once.
	wanted := without(heldPorts(s), had)
	var missing []*int32
	for i := range s.Spec.Ports {
		if needsNodePorts(s) && s.Spec.Ports[i].NodePort == 0 {
			missing = append(missing, &s.Spec.Ports[i].NodePort)
		}
	}
	if needsHealthPort(s) && s.Spec.HealthCheckNodePort == 0 {
		missing = append(missing, &s.Spec.HealthCheckNodePort)
	}
	if len(wanted)+len(missing) == 0 {
		return nil
	}
	given, err := a.ports.Reserve(ctx, s.UID, wanted, len(missing), dryRun)
	var taken *allocate.TakenError
	switch {
	case errors.As(err, &taken):
		return invalidService(s, field.ErrorList{field.Invalid(nodePortPath(s, taken.Port), taken.Port, taken.Error())})
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
	}
	for i, port := range given {
		*missing[i] = port
	}
	return nil
}

func nodePortPath(s *corev1.Service, port int32) *field.Path {
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].NodePort == port {
			return specPath.Child("ports").Index(i).Child("nodePort")
		}
	}
	return specPath.Child("healthCheckNodePort")
}

func (a *allocation) releaseUnless(ctx context.Context, dryRun bool, s *corev1.Service, ports []int32, addresses []netip.Addr) {
	if !dryRun {
		a.release(ctx, s, ports, addresses)
	}
}

// release does not fail the request, which has been decided by now: what stays taken is missed by nobody until the range is full.
func (a *allocation) release(ctx context.Context, s *corev1.Service, ports []int32, addresses []netip.Addr) {
	// The request may have been given up; what it took is given back all the same.
	ctx = context.WithoutCancel(ctx)
	errs := []error{a.ports.Release(ctx, ports)}
	for _, address := range addresses {
		errs = append(errs, a.addresses.Release(ctx, s, address))
	}
	if err := errors.Join(errs...); err != nil {
		klog.FromContext(ctx).Error(err, "Addresses or ports of a service stay taken", "service", klog.KObj(s), "ports", ports, "addresses", addresses)
	}
}

func heldAddresses(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	if !needsClusterIP(s) {
		return nil
	}
	for _, ip := range s.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			out = append(out, address)
		}
	}
	return out
}

// heldPorts are the numbers of the node ports, each once.
func heldPorts(s *corev1.Service) []int32 {
	var out []int32
	add := func(port int32) {
		if port != 0 && !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	for i := range s.Spec.Ports {
		add(s.Spec.Ports[i].NodePort)
	}
	add(s.Spec.HealthCheckNodePort)
	return out
}

func without[T comparable](list, others []T) []T {
	var out []T
	for _, v := range list {
		if !slices.Contains(others, v) {
			out = append(out, v)
		}
	}
	return out
}

func invalidService(s *corev1.Service, errs field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
}

// addresses finds the registry of IPAddress, which is in another group.
func (o Options) addresses(env resource.Environment) (*allocate.Addresses, error) {
	store, err := o.IPAddresses.Store(env, networkingv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	return &allocate.Addresses{Store: store, Ranges: func(context.Context) ([]netip.Prefix, error) { return []netip.Prefix{o.ServiceCIDR}, nil }}, nil
}
