package network

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// ingressParent is where the filters of an ingress qdisc are.
var ingressParent = netlink.MakeHandle(0xffff, 0)

// Shape limits what the sandbox may receive and send, in bits a second on the link; 0 takes a limit away. It needs SetUp before, holds until
// TearDown, and has to be repeated when SetUp had to make the link anew.
//
// What the pod receives is what the node's end of its link sends: a token bucket there does it. What the pod sends arrives at that end, and a
// kernel can only queue what it sends: so it is redirected to an interface of kind ifb, which has the bucket and gives the packets
// back. Both are in the node's namespace, out of the pod's reach.
func (n *Node) Shape(ctx context.Context, sandboxID string, ingressBitsPerSecond, egressBitsPerSecond uint64) error {
	done, err := n.begin(ctx, sandboxID)
	if err != nil {
		return err
	}
	defer done()
	if err := n.shape(ctx, sandboxID, ingressBitsPerSecond, egressBitsPerSecond); err != nil {
		return fmt.Errorf("pod network of node %s: shaping: %w", n.name, err)
	}
	klog.FromContext(ctx).V(4).Info("Pod's bandwidth is set", "sandbox", sandboxID, "node", n.name, "ingress", ingressBitsPerSecond, "egress", egressBitsPerSecond)
	return nil
}

func (n *Node) shape(ctx context.Context, sandboxID string, ingress, egress uint64) error {
	name := n.fabric.config.interfaceName(podLink, n.name, sandboxID)
	link, err := n.in.link(name)
	if err != nil {
		return err
	}
	if link == nil {
		return fmt.Errorf("it has no link %s: SetUp comes first", name)
	}
	if err := n.in.bound(link, ingress, n.fabric.config.MTU); err != nil {
		return fmt.Errorf("ingress: %w", err)
	}
	if err := n.shapeEgress(ctx, link, n.fabric.config.interfaceName(ifbLink, n.name, sandboxID), egress); err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	return nil
}

// shapeEgress leads what comes in by the link over an ifb of that name, with a bucket; or takes both away.
func (n *Node) shapeEgress(ctx context.Context, link netlink.Link, name string, rate uint64) error {
	if rate == 0 {
		return errors.Join(n.in.removeQdisc(&netlink.Ingress{QdiscAttrs: ingressAttrs(link)}), n.in.unlink(name))
	}
	ifb, err := n.in.ensureIfb(ctx, name, n.fabric.config.MTU)
	if err != nil {
		return err
	}
	if err := n.in.bound(ifb, rate, n.fabric.config.MTU); err != nil {
		return errors.Join(err, n.in.unlinkUnused(link, ifb))
	}
	return n.in.redirect(link, ifb)
}

// bound puts a token bucket before what the link sends, changes the one that is there without losing packets, or takes it away for rate 0.
func (in *inside) bound(link netlink.Link, rate uint64, mtu int) error {
	attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if rate == 0 {
		return in.removeQdisc(&netlink.Tbf{QdiscAttrs: attrs})
	}
	b, err := newBucket(rate, mtu)
	if err != nil {
		return err
	}
	ticks, err := b.ticks(netlink.TickInUsec())
	if err != nil {
		return err
	}
	if err := in.QdiscReplace(&netlink.Tbf{QdiscAttrs: attrs, Rate: b.rate, Limit: b.limit, Buffer: ticks}); err != nil {
		return fmt.Errorf("token bucket on %s in %s: %w", link.Attrs().Name, in.ns.Path(), err)
	}
	return nil
}

// removeQdisc removes a qdisc; none there is fine, which the kernel says in several ways.
func (in *inside) removeQdisc(qdisc netlink.Qdisc) error {
	err := in.QdiscDel(qdisc)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return fmt.Errorf("removing the %s qdisc in %s: %w", qdisc.Type(), in.ns.Path(), err)
}

// redirect leads every packet that comes in by the link to the ifb.
func (in *inside) redirect(link, ifb netlink.Link) error {
	if done, err := in.redirected(link, ifb); done || err != nil {
		return err
	}
	ingress := &netlink.Ingress{QdiscAttrs: ingressAttrs(link)}
	if err := in.removeQdisc(ingress); err != nil {
		return err
	}
	err := in.QdiscAdd(ingress)
	if err == nil {
		err = in.FilterAdd(&netlink.U32{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: ingressParent, Priority: 1, Protocol: unix.ETH_P_ALL},
			Actions:     []netlink.Action{netlink.NewMirredAction(ifb.Attrs().Index)},
		})
	}
	if err != nil {
		return fmt.Errorf("redirecting from %s to %s in %s: %w", link.Attrs().Name, ifb.Attrs().Name, in.ns.Path(), err)
	}
	return nil
}

// redirected tells whether the link's packets go to the ifb already.
func (in *inside) redirected(link, ifb netlink.Link) (bool, error) {
	filters, err := dump(func() ([]netlink.Filter, error) { return in.FilterList(link, ingressParent) })
	if err != nil {
		return false, fmt.Errorf("filters of %s in %s: %w", link.Attrs().Name, in.ns.Path(), err)
	}
	for _, filter := range filters {
		u32, ok := filter.(*netlink.U32)
		if !ok {
			continue
		}
		for _, action := range u32.Actions {
			if mirred, ok := action.(*netlink.MirredAction); ok && mirred.Ifindex == ifb.Attrs().Index {
				return true, nil
			}
		}
	}
	return false, nil
}

func ingressAttrs(link netlink.Link) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: ingressParent, Parent: netlink.HANDLE_INGRESS}
}
