package network

import (
	"context"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
)

// podLink begins the name of the node's end of a pod's link.
const podLink = "pod"

// interfaces lists the names of the interfaces in the node's namespace that belong to a sandbox.
func (n *Node) interfaces(sandboxID string) []string {
	return []string{n.fabric.config.interfaceName(podLink, n.name, sandboxID)}
}

// attach brings the sandbox's link to the wanted state. The node's route to the pod comes last: nothing reaches a pod that can't answer.
func (n *Node) attach(ctx context.Context, sandboxID, netnsPath string, addr netip.Addr) error {
	ns, err := netns.Open(netnsPath)
	if err != nil {
		return err
	}
	pod, err := enter(ns)
	if err != nil {
		return err
	}
	defer pod.close()
	config := n.fabric.config
	near := &end{in: n.in, name: config.interfaceName(podLink, n.name, sandboxID), mac: config.hardwareAddress(podLink, n.name, sandboxID)}
	far := &end{in: pod, name: "eth0", mac: config.hardwareAddress("eth", n.name, sandboxID)}
	if err := pair(ctx, near, far, config.MTU); err != nil {
		return err
	}
	if err := pod.furnish(far.link, addr, near); err != nil {
		return err
	}
	if err := n.in.neighbour(near.link, addr, far.mac); err != nil {
		return err
	}
	return n.in.routes([]netlink.Route{direct(near.link, addr, n.address)}, func(r netlink.Route) bool {
		return r.LinkIndex == near.link.Attrs().Index
	})
}

// furnish sets up the inside of a pod's namespace: loopback, the address, and the way out through the node's end of the link.
func (in *inside) furnish(eth0 netlink.Link, addr netip.Addr, node *end) error {
	if _, err := in.loopback(); err != nil {
		return err
	}
	if err := in.address(eth0, addr); err != nil {
		return err
	}
	if err := in.neighbour(eth0, gateway, node.mac); err != nil {
		return err
	}
	out := []netlink.Route{direct(eth0, gateway, addr), through(eth0, everything(addr), gateway, addr)}
	return in.routes(out, func(r netlink.Route) bool { return r.LinkIndex == eth0.Attrs().Index })
}

// release removes the sandbox's interfaces, and with them its routes, and then frees its address: no address is handed out to which an old route leads.
func (n *Node) release(sandboxID string) error {
	for _, name := range n.interfaces(sandboxID) {
		if err := n.in.unlink(name); err != nil {
			return err
		}
	}
	return n.pool.Free(sandboxID)
}
