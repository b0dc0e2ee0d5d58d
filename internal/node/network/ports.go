package network

import (
	"fmt"
	"net/netip"
	"slices"
)

// PortMapping leads a port of the node to one of a pod.
type PortMapping struct {
	Protocol      string     // TCP, UDP or SCTP
	HostIP        netip.Addr // an address of the node; the zero Addr or 0.0.0.0 means all, also 127.0.0.1
	HostPort      uint16
	ContainerPort uint16
}

// String is how the mapping is told to people.
func (m PortMapping) String() string {
	host := "*"
	if m.HostIP.IsValid() {
		host = m.HostIP.String()
	}
	return fmt.Sprintf("%s %s:%d to %d", m.Protocol, host, m.HostPort, m.ContainerPort)
}

// protocolNumbers are those of the IP header.
var protocolNumbers = map[string]byte{"TCP": 6, "UDP": 17, "SCTP": 132}

// normal is the mapping in its one form, or an error that tells what is wrong with it.
func (m PortMapping) normal() (PortMapping, error) {
	if m.HostIP.IsValid() && m.HostIP.IsUnspecified() {
		m.HostIP = netip.Addr{}
	}
	switch _, known := protocolNumbers[m.Protocol]; {
	case !known:
		return m, fmt.Errorf("port mapping %s: protocol %q is none of TCP, UDP and SCTP", m, m.Protocol)
	case m.HostIP.IsValid() && !m.HostIP.Is4():
		return m, fmt.Errorf("port mapping %s: the host address is not IPv4", m)
	case m.HostPort == 0 || m.ContainerPort == 0:
		return m, fmt.Errorf("port mapping %s: a port is 0", m)
	}
	return m, nil
}

// overlaps tells whether a packet could be meant by both mappings.
func (m PortMapping) overlaps(other PortMapping) bool {
	return m.Protocol == other.Protocol && m.HostPort == other.HostPort &&
		(m.HostIP == other.HostIP || !m.HostIP.IsValid() || !other.HostIP.IsValid())
}

// mappings are what is published on a node, by the address of the pod that it leads to.
type mappings map[netip.Addr][]PortMapping

// plan checks what a pod wants to have published and tells what that adds and removes. Of pods for which gone is true, mappings are left over from a
// crash and make way.
func (p mappings) plan(pod netip.Addr, want []PortMapping, gone func(netip.Addr) bool) (add, remove mappings, err error) {
	add, remove = mappings{}, mappings{}
	var normal []PortMapping
	for _, m := range want {
		if m, err = m.normal(); err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(normal, m.overlaps); i >= 0 {
			if normal[i] == m {
				continue
			}
			return nil, nil, fmt.Errorf("port mappings %s and %s of one pod are in conflict", normal[i], m)
		}
		normal = append(normal, m)
	}
	for addr, have := range p {
		for _, m := range have {
			switch taken := slices.IndexFunc(normal, m.overlaps); {
			case addr == pod && slices.Contains(normal, m):
			case addr == pod || taken >= 0 && gone(addr):
				remove[addr] = append(remove[addr], m)
			case taken >= 0:
				return nil, nil, fmt.Errorf("port mapping %s: the pod with address %s has %s", normal[taken], addr, m)
			}
		}
	}
	for _, m := range normal {
		if !slices.Contains(p[pod], m) {
			add[pod] = append(add[pod], m)
		}
	}
	return add, remove, nil
}

// apply changes what is published as planned.
func (p mappings) apply(add, remove mappings) {
	for addr, gone := range remove {
		p[addr] = slices.DeleteFunc(p[addr], func(m PortMapping) bool { return slices.Contains(gone, m) })
		if len(p[addr]) == 0 {
			delete(p, addr)
		}
	}
	for addr, more := range add {
		p[addr] = append(p[addr], more...)
	}
}
