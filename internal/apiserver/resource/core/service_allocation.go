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
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
)

// allocation gives services their addresses and node ports before they are stored, and takes back what was given when storing fails or when the service goes.
//
// The registry calls before it prepares and checks an object, and once more for every attempt that another writer forestalled; what becomes of the write only
// serviceStorage sees. So the attempts of one request share a draft, which is settled when the request has ended.
type allocation struct {
	addresses *allocate.Addresses
	ports     *allocate.Ports
}

// draft is what a request took so far, and what it gives back when it succeeds.
type draft struct {
	service          *corev1.Service
	takenAddresses   []netip.Addr
	takenPorts       []int32
	droppedAddresses []netip.Addr
	droppedPorts     []int32
}

type draftKey struct{}

// take notes an address that was reserved; a dry run reserves nothing.
func (d *draft) take(dryRun bool, address netip.Addr) {
	if !dryRun {
		d.takenAddresses = append(d.takenAddresses, address)
	}
}

// serviceStorage settles what requests took.
type serviceStorage struct {
	*resource.Storage
	allocation *allocation
}

// Create implements rest.Creater.
func (s *serviceStorage) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	d := &draft{}
	out, err := s.Storage.Create(context.WithValue(ctx, draftKey{}, d), obj, validate, options)
	s.allocation.settle(ctx, d, err)
	return out, err
}

// Update implements rest.Updater.
func (s *serviceStorage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	d := &draft{}
	out, created, err := s.Storage.Update(context.WithValue(ctx, draftKey{}, d), name, info, create, update, forceCreate, options)
	s.allocation.settle(ctx, d, err)
	return out, created, err
}

// installAllocation hooks the allocation into the registry of services.
func installAllocation(env resource.Environment, store *genericregistry.Store, options Options) (*allocation, error) {
	addresses, err := options.addresses(env)
	if err != nil {
		return nil, err
	}
	ports, err := allocate.NewPorts(env.Options, options.NodePorts)
	if err != nil {
		return nil, fmt.Errorf("storage of node ports: %w", err)
	}
	a := &allocation{addresses: addresses, ports: ports}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, o *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return nothing, a.change(ctx, obj.(*corev1.Service), &corev1.Service{}, dryrun.IsDryRun(o.DryRun))
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, o *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		if ctx.Value(draftKey{}) == nil {
			// A write to status, which leaves all that is allocated as it is.
			return nothing, nil
		}
		prepareServiceUpdate(ctx, obj.(*corev1.Service), old.(*corev1.Service))
		return nothing, a.change(ctx, obj.(*corev1.Service), old.(*corev1.Service), dryrun.IsDryRun(o.DryRun))
	}
	store.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) {
		if s := obj.(*corev1.Service); o == nil || !dryrun.IsDryRun(o.DryRun) {
			a.release(context.Background(), s, heldPorts(s), heldAddresses(s))
		}
	}
	destroy := store.DestroyFunc
	store.DestroyFunc = func() { ports.Destroy(); destroy() }
	return a, nil
}

func nothing(context.Context, bool) {}

// change gives the service what it needs beyond what it had as old.
func (a *allocation) change(ctx context.Context, s, old *corev1.Service, dryRun bool) error {
	d, ok := ctx.Value(draftKey{}).(*draft)
	if !ok {
		return errors.New("services are written through their own storage only")
	}
	// What an attempt took that came to nothing.
	a.release(ctx, s, d.takenPorts, d.takenAddresses)
	*d = draft{service: s}
	if err := setFamilies(s); err != nil {
		return err
	}
	hadAddresses, hadPorts := heldAddresses(old), heldPorts(old)
	if err := a.giveAddress(ctx, d, s, hadAddresses, dryRun); err != nil {
		return err
	}
	if err := a.givePorts(ctx, d, s, hadPorts, dryRun); err != nil {
		return err
	}
	if !dryRun {
		d.droppedAddresses, d.droppedPorts = without(hadAddresses, heldAddresses(s)), without(hadPorts, heldPorts(s))
	}
	return nil
}

// settle ends a request: what it took goes back unless it was stored, and what the service no longer has goes back when it was. An error that does not say
// whether the service was stored leaves all taken: better an address that nobody has than one that two have.
func (a *allocation) settle(ctx context.Context, d *draft, err error) {
	switch {
	case err == nil:
		a.release(ctx, d.service, d.droppedPorts, d.droppedAddresses)
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err):
		a.release(ctx, d.service, d.takenPorts, d.takenAddresses)
	}
}

func (a *allocation) giveAddress(ctx context.Context, d *draft, s *corev1.Service, had []netip.Addr, dryRun bool) error {
	if !needsClusterIP(s) || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	if s.Spec.ClusterIP == "" {
		address, err := a.addresses.Next(ctx, s, dryRun)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", err))
		}
		s.Spec.ClusterIP, s.Spec.ClusterIPs = address.String(), []string{address.String()}
		d.take(dryRun, address)
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
		d.take(dryRun, address)
	}
	return nil
}

func addressProblem(err error) string {
	if apierrors.IsAlreadyExists(err) {
		return "failed to allocate IP: provided IP is already allocated"
	}
	return "failed to allocate IP: " + err.Error()
}

func (a *allocation) givePorts(ctx context.Context, d *draft, s *corev1.Service, had []int32, dryRun bool) error {
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
	if !dryRun {
		d.takenPorts = append(wanted, given...)
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

// release does not fail the request, which has been decided by now: what stays taken is missed by nobody until the range is full.
func (a *allocation) release(ctx context.Context, s *corev1.Service, ports []int32, addresses []netip.Addr) {
	if len(ports)+len(addresses) == 0 {
		return
	}
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

func invalidService(s *corev1.Service, errs field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
}

// addresses finds the registry of IPAddress, which is in another group.
func (o Options) addresses(env resource.Environment) (*allocate.Addresses, error) {
	store, err := o.IPAddresses.Store(env, networkingv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	networks, err := o.ServiceCIDRs.Store(env, networkingv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	return &allocate.Addresses{Store: store, Ranges: func(ctx context.Context) ([]netip.Prefix, error) { return o.ranges(ctx, networks) }}, nil
}

// ranges are the configured network and those of ServiceCIDRs that are not being deleted.
func (o Options) ranges(ctx context.Context, networks rest.Lister) ([]netip.Prefix, error) {
	list, err := networks.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := []netip.Prefix{o.ServiceCIDR}
	for _, network := range list.(*networkingv1.ServiceCIDRList).Items {
		for _, text := range network.Spec.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			if err == nil && network.DeletionTimestamp == nil && prefix.Addr().Is4() == o.ServiceCIDR.Addr().Is4() && !slices.Contains(out, prefix) {
				out = append(out, prefix)
			}
		}
	}
	return out, nil
}
