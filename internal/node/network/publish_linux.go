package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// Publish leads exactly these ports of the node to the sandbox, and no others of earlier calls. It needs SetUp before and holds until TearDown,
// also across restarts of the process. A port that another pod has is an error, and then nothing is changed.
//
// Connections come from everywhere: from other nodes, from pods of this one, from the pod itself, from the node's own namespace, there also by
// 127.0.0.1. The client's address is kept, but where the answer would not come back: to the pod itself and to 127.0.0.1.
func (n *Node) Publish(ctx context.Context, sandboxID string, ports []PortMapping) error {
	done, err := n.begin(ctx, sandboxID)
	if err != nil {
		return err
	}
	defer done()
	if err := n.publish(sandboxID, ports); err != nil {
		return fmt.Errorf("pod network of node %s: publishing ports: %w", n.name, err)
	}
	klog.FromContext(ctx).V(4).Info("Pod's ports are published", "sandbox", sandboxID, "node", n.name, "ports", ports)
	return nil
}

func (n *Node) publish(sandboxID string, ports []PortMapping) error {
	addr, ok := n.pool.Lookup(sandboxID)
	if !ok {
		return errors.New("it has no address: SetUp comes first")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	add, remove, err := n.published.plan(addr, ports, func(other netip.Addr) bool { return !n.owned(other) })
	if err != nil {
		return err
	}
	if len(add) > 0 {
		// Packets from 127.0.0.1 may then leave by this link, and answers to it come in.
		link := n.fabric.config.interfaceName(podLink, n.name, sandboxID)
		if err := n.in.set(setting{"ipv4/conf/" + link + "/route_localnet", "1"}); err != nil {
			return err
		}
	}
	return n.translate(add, remove)
}

// translate changes the rules, and what is remembered of them, in one step. The caller holds mu.
func (n *Node) translate(add, remove mappings) error {
	if len(add) == 0 && len(remove) == 0 {
		return nil
	}
	var last []netip.Addr
	for addr := range remove {
		if len(add[addr]) == 0 && len(remove[addr]) == len(n.published[addr]) {
			last = append(last, addr)
		}
	}
	if err := n.in.changePorts(n.address, add, remove, last); err != nil {
		return err
	}
	n.published.apply(add, remove)
	return errors.Join(n.in.forgetFlows(add), n.in.forgetFlows(remove))
}

// unpublish removes all ports that lead to the address.
func (n *Node) unpublish(addr netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.published[addr]) == 0 {
		return nil
	}
	return n.translate(nil, mappings{addr: slices.Clone(n.published[addr])})
}

// unpublishStrays removes ports that lead to addresses of nobody.
func (n *Node) unpublishStrays() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	remove := mappings{}
	for addr, ports := range n.published {
		if !n.owned(addr) {
			remove[addr] = slices.Clone(ports)
		}
	}
	return n.translate(nil, remove)
}

// owned tells whether a sandbox has the address.
func (n *Node) owned(addr netip.Addr) bool {
	for _, sandboxID := range n.pool.Owners() {
		if got, _ := n.pool.Lookup(sandboxID); got == addr {
			return true
		}
	}
	return false
}

// forgetFlows makes the kernel decide anew about UDP packets to ports whose mapping has changed. Without a connection's end, it would
// send those of a steady client the old way for as long as they come.
func (in *inside) forgetFlows(changed mappings) error {
	filter := udpFlows{}
	for addr, ports := range changed {
		for _, m := range ports {
			if m.Protocol == "UDP" {
				filter[m.HostPort] = append(filter[m.HostPort], addr)
			}
		}
	}
	if len(filter) == 0 {
		return nil
	}
	err := in.ns.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer handle.Close()
		_, err = handle.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.FAMILY_V4, filter)
		if errors.Is(err, netlink.ErrDumpInterrupted) { // flows that came meanwhile follow the new rules
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("forgetting UDP flows in %s: %w", in.ns.Path(), err)
	}
	return nil
}

// udpFlows selects flows by the node's port, to pods' addresses or without translation.
type udpFlows map[uint16][]netip.Addr

// MatchConntrackFlow tells whether the flow is selected.
func (f udpFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	answers := flow.Reverse.SrcIP
	for _, addr := range f[flow.Forward.DstPort] {
		if answers.Equal(addr.AsSlice()) || answers.Equal(flow.Forward.DstIP) {
			return true
		}
	}
	return false
}
