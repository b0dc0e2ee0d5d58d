// Package allocate hands out what services need one of a kind: cluster addresses and node ports. What is taken is in the store, so that several servers hand out
// nothing twice, and a restart forgets nothing.
//
// An address is an object of its own, networking.k8s.io/v1 IPAddress, whose name is the address: who creates it has it. Ports are one bitmap, which is
// changed by compare-and-swap. Where a search begins comes from the service's UID, which is random already.
package allocate

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
)

// managedBy is the label value by which Kubernetes marks addresses that the API server made.
const managedBy = "ipallocator.k8s.io"

// blindTries is how many addresses are tried before all that are taken are listed.
const blindTries = 8

// IPAddresses is the part of the registry of IPAddress that is needed here.
type IPAddresses interface {
	rest.Creater
	rest.Getter
	rest.Lister
	rest.GracefulDeleter
}

// Addresses hands out cluster addresses.
type Addresses struct {
	Store IPAddresses
	// Ranges are the networks that addresses come from, the primary one first.
	Ranges func(ctx context.Context) ([]netip.Prefix, error)
}

// Take reserves the address that the service asks for.
func (a *Addresses) Take(ctx context.Context, service *corev1.Service, address netip.Addr, dryRun bool) error {
	ranges, err := a.Ranges(ctx)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if r.Contains(address) && r.Masked().Addr() != address && last(r) != address {
			return a.create(ctx, service, address, dryRun)
		}
	}
	return fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", address, ranges)
}

// Next reserves an address that is free.
func (a *Addresses) Next(ctx context.Context, service *corev1.Service, dryRun bool) (netip.Addr, error) {
	ranges, err := a.Ranges(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, r := range ranges {
		address, err := a.nextIn(ctx, service, r, dryRun)
		if err != nil || address.IsValid() {
			return address, err
		}
	}
	return netip.Addr{}, fmt.Errorf("no address is free in %s; add a ServiceCIDR or delete services", ranges)
}

// nextIn looks in the upper part of the range first: the lower one is for addresses that users choose.
func (a *Addresses) nextIn(ctx context.Context, service *corev1.Service, r netip.Prefix, dryRun bool) (netip.Addr, error) {
	size := capacity(r)
	lower := min(max(16, size/16), 256)
	if size <= lower {
		lower = 0
	}
	var taken map[netip.Addr]bool
	start := seed(service.UID) % (size - lower)
	for i := uint64(0); i < size; i++ {
		offset := lower + (start+i)%(size-lower)
		if i >= size-lower {
			offset = i - (size - lower)
		}
		address := at(r, offset+1)
		if taken[address] {
			continue
		}
		err := a.create(ctx, service, address, dryRun)
		if err == nil {
			return address, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return netip.Addr{}, err
		}
		if i == blindTries {
			if taken, err = a.taken(ctx); err != nil {
				return netip.Addr{}, err
			}
		}
	}
	return netip.Addr{}, nil
}

func (a *Addresses) create(ctx context.Context, service *corev1.Service, address netip.Addr, dryRun bool) error {
	if dryRun {
		_, err := a.Store.Get(ctx, address.String(), &metav1.GetOptions{})
		switch {
		case err == nil:
			return apierrors.NewAlreadyExists(networkingv1.Resource("ipaddresses"), address.String())
		case apierrors.IsNotFound(err):
			return nil
		}
		return err
	}
	family := corev1.IPv4Protocol
	if address.Is6() {
		family = corev1.IPv6Protocol
	}
	_, err := a.Store.Create(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: address.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(family), networkingv1.LabelManagedBy: managedBy,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: service.Namespace, Name: service.Name}},
	}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

// Release gives back an address of the service. One that is gone already, or is another's by now, is left as it is.
func (a *Addresses) Release(ctx context.Context, service *corev1.Service, address netip.Addr) error {
	obj, err := a.Store.Get(ctx, address.String(), &metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	held := obj.(*networkingv1.IPAddress)
	if p := held.Spec.ParentRef; p == nil || p.Namespace != service.Namespace || p.Name != service.Name {
		return nil
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = &metav1.Preconditions{UID: &held.UID}
	_, _, err = a.Store.Delete(ctx, held.Name, rest.ValidateAllObjectFunc, options)
	return ignoreNotFound(err)
}

func (a *Addresses) taken(ctx context.Context) (map[netip.Addr]bool, error) {
	list, err := a.Store.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := map[netip.Addr]bool{}
	for i := range list.(*networkingv1.IPAddressList).Items {
		address, err := netip.ParseAddr(list.(*networkingv1.IPAddressList).Items[i].Name)
		if err == nil {
			out[address] = true
		}
	}
	return out, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func seed(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // never fails (hash.Hash)
	return h.Sum64()
}

// capacity is the number of addresses of r without the first (the network) and, in IPv4, the last (broadcast); at most 2^62.
func capacity(r netip.Prefix) uint64 {
	bits := r.Addr().BitLen() - r.Bits()
	if bits > 62 {
		bits = 62
	}
	size := uint64(1)<<bits - 1
	if r.Addr().Is4() && size > 1 {
		size--
	}
	return size
}

// at is the nth address of r; the network itself is the 0th.
func at(r netip.Prefix, n uint64) netip.Addr {
	bytes := r.Masked().Addr().AsSlice()
	for i := len(bytes) - 1; i >= 0 && n > 0; i-- {
		sum := uint64(bytes[i]) + n&0xff
		bytes[i] = byte(sum)
		n = n>>8 + sum>>8
	}
	address, _ := netip.AddrFromSlice(bytes) // four or sixteen bytes, as they came
	return address
}

// last is the broadcast address of an IPv4 network; IPv6 has none, and what is returned is no address of r that could be handed out.
func last(r netip.Prefix) netip.Addr {
	if r.Addr().Is6() || r.Bits() >= 31 {
		return netip.Addr{}
	}
	return at(r, capacity(r)+1)
}
