// Package servicecidr keeps networks of services from being deleted while addresses of theirs are in use. Each ServiceCIDR gets a finalizer and the condition Ready; when it is to be deleted,
// the finalizer stays until no address is in it alone, and then a while longer, for allocators that have not heard of the deletion.
//
// An event of a ServiceCIDR leads to a sync of it and of all that wait to be deleted, since it may take over their addresses; one of an IPAddress to a sync of those that wait and contain it.
package servicecidr

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "service-cidr-controller"

const (
	finalizer = "networking.k8s.io/service-cidr-finalizer"
	// managedBy is the label value of addresses that the API server hands out.
	managedBy = "ipallocator.k8s.io"
	// grace is how long an allocator may go on with what it knew before the deletion.
	grace = 10 * time.Second
)

// Controller keeps networks.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	clock     clock.PassiveClock
	networks  networkinglisters.ServiceCIDRLister
	addresses networkinglisters.IPAddressLister
}

// New makes the controller.
func New(ctx context.Context, deps controller.Deps) (controller.Controller, error) {
	api := deps.Informers.Networking().V1()
	networks, addresses := api.ServiceCIDRs(), api.IPAddresses()
	c := &Controller{client: deps.Client, clock: deps.Clock, networks: networks.Lister(), addresses: addresses.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	err := c.Handle(networks.Informer(), controller.OnAny(func(n *networkingv1.ServiceCIDR) {
		c.Add(n.Name)
		c.addWaiting(ctx, func(*networkingv1.ServiceCIDR) bool { return true })
	}))
	if err != nil {
		return nil, err
	}
	return c, c.Handle(addresses.Informer(), controller.OnAny(func(a *networkingv1.IPAddress) {
		if address, ok := handedOut(a); ok {
			c.addWaiting(ctx, func(n *networkingv1.ServiceCIDR) bool { return contains(n, address) })
		}
	}))
}

// addWaiting adds those of the networks that wait to be deleted.
func (c *Controller) addWaiting(ctx context.Context, which func(*networkingv1.ServiceCIDR) bool) {
	all, err := c.networks.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "List ServiceCIDRs", "controller", Name)
	}
	for _, n := range all {
		if n.DeletionTimestamp != nil && which(n) {
			c.Add(n.Name)
		}
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	network, err := c.networks.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if network.DeletionTimestamp != nil {
		return c.release(ctx, network)
	}
	if network, err = c.protect(ctx, network); err != nil {
		return err
	}
	return c.setReady(ctx, network, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "Kubernetes Service CIDR is ready"})
}

func (c *Controller) protect(ctx context.Context, network *networkingv1.ServiceCIDR) (*networkingv1.ServiceCIDR, error) {
	if slices.Contains(network.Finalizers, finalizer) {
		return network, nil
	}
	network = network.DeepCopy()
	network.Finalizers = append(network.Finalizers, finalizer)
	return c.update(ctx, network)
}

// release lets a network go that nothing needs any more.
func (c *Controller) release(ctx context.Context, network *networkingv1.ServiceCIDR) error {
	if !slices.Contains(network.Finalizers, finalizer) {
		return nil
	}
	needed, err := c.needed(network)
	if err != nil {
		return err
	}
	if needed {
		return c.setReady(ctx, network, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	if left := grace - c.clock.Since(network.DeletionTimestamp.Time); left > 0 {
		c.AddAfter(network.Name, left)
		return nil
	}
	network = network.DeepCopy()
	network.Finalizers = slices.DeleteFunc(network.Finalizers, func(f string) bool { return f == finalizer })
	_, err = c.update(ctx, network)
	return controller.IgnoreNotFound(err)
}

// needed reports whether an address that was handed out is in this network, and in no other that stays.
func (c *Controller) needed(network *networkingv1.ServiceCIDR) (bool, error) {
	all, err := c.networks.List(labels.Everything())
	if err != nil {
		return false, err
	}
	stay := slices.DeleteFunc(slices.Clone(all), func(n *networkingv1.ServiceCIDR) bool { return n.DeletionTimestamp != nil })
	addresses, err := c.addresses.List(labels.Everything())
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		address, ok := handedOut(a)
		if ok && contains(network, address) && !slices.ContainsFunc(stay, func(n *networkingv1.ServiceCIDR) bool { return contains(n, address) }) {
			return true, nil
		}
	}
	return false, nil
}

// setReady writes the condition Ready when it says something else.
func (c *Controller) setReady(ctx context.Context, network *networkingv1.ServiceCIDR, ready metav1.Condition) error {
	ready.Type = networkingv1.ServiceCIDRConditionReady
	if have := meta.FindStatusCondition(network.Status.Conditions, ready.Type); have != nil && have.Status == ready.Status {
		return nil
	}
	ready.LastTransitionTime = metav1.NewTime(c.clock.Now())
	network = network.DeepCopy()
	meta.SetStatusCondition(&network.Status.Conditions, ready)
	_, err := c.client.NetworkingV1().ServiceCIDRs().UpdateStatus(ctx, network, metav1.UpdateOptions{})
	if err = controller.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write the status of ServiceCIDR %s: %w", network.Name, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, network *networkingv1.ServiceCIDR) (*networkingv1.ServiceCIDR, error) {
	updated, err := c.client.NetworkingV1().ServiceCIDRs().Update(ctx, network, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the finalizers of ServiceCIDR %s: %w", network.Name, err)
	}
	return updated, nil
}

// handedOut is the address of an IPAddress that the API server made; what others made is theirs to look after.
func handedOut(a *networkingv1.IPAddress) (netip.Addr, bool) {
	address, err := netip.ParseAddr(a.Name)
	return address, err == nil && a.Labels[networkingv1.LabelManagedBy] == managedBy
}

func contains(n *networkingv1.ServiceCIDR, address netip.Addr) bool {
	return slices.ContainsFunc(n.Spec.CIDRs, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(address)
	})
}
