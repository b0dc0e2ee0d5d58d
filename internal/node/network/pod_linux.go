package network

import (
	"context"
	"net/netip"

	"github.com/bayplan/bayplan/internal/netns"
)

// podLink begins the name of the node's end of a pod's link.
const podLink = "pod"

// interfaces lists the names of the interfaces in the node's namespace that belong to a sandbox.
func (n *Node) interfaces(sandboxID string) []string {
	config := n.fabric.config
	return []string{config.interfaceName(podLink, n.name, sandboxID), config.interfaceName(ifbLink, n.name, sandboxID)}
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
	if err := furnish(far, near, addr); err != nil {
		return err
	}
	if err := n.in.neighbour(near.link, addr, far.mac); err != nil {
		return err
	}
	return near.routes(direct(near.link, addr, n.address))
}

// furnish sets up the inside of a pod's namespace: loopback, the address, and the way out through the node's end of the link.
func furnish(eth0, node *end, addr netip.Addr) error {
	if _, err := eth0.in.loopback(); err != nil {
		return err
	}
	if err := eth0.in.address(eth0.link, addr); err != nil {
		return err
	}
	if err := eth0.in.neighbour(eth0.link, gateway, node.mac); err != nil {
		return err
	}
	return eth0.routes(direct(eth0.link, gateway, addr), through(eth0.link, everything(addr), gateway, addr))
}

// release removes the sandbox's ports, then its interfaces and with them its routes, and then frees its address: no address is handed out to
// which something old leads.
func (n *Node) release(sandboxID string) error {
	if addr, ok := n.pool.Lookup(sandboxID); ok {
		if err := n.unpublish(addr); err != nil {
			return err
		}
	}
	err := n.in.apart(func(in *inside) error {
		for _, name := range n.interfaces(sandboxID) {
			if err := in.unlink(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.pool.Free(sandboxID)
}
