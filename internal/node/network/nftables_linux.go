package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
)

// hostPorts is the table of a node's published ports. As nft would show it:
//
//	table ip bayplan-hostports {
//		map addressed { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service }
//		map ports     { type inet_proto . inet_service : ipv4_addr . inet_service }
//		set hairpin   { type ipv4_addr . ipv4_addr }
//		chain translate {
//			dnat ip to ip daddr . meta l4proto . th dport map @addressed
//			dnat ip to meta l4proto . th dport map @ports
//		}
//		chain prerouting  { type nat hook prerouting priority dstnat; fib daddr type local jump translate }
//		chain output      { type nat hook output priority dstnat; fib daddr type local jump translate }
//		chain postrouting { type nat hook postrouting priority srcnat
//			ip saddr . ip daddr @hairpin snat to NODE
//			oifname != "lo" ip saddr 127.0.0.0/8 snat to NODE
//		}
//		chain input { type filter hook input priority filter
//			iifname != "lo" ip daddr 127.0.0.0/8 ct state ! established,related drop
//		}
//	}
//
// The last rule keeps pods away from what listens on the node's 127.0.0.1, which route_localnet would let them reach.
type hostPorts struct {
	conn      *nftables.Conn
	table     *nftables.Table
	addressed *nftables.Set
	ports     *nftables.Set
	hairpin   *nftables.Set
}

func newHostPorts(conn *nftables.Conn) *hostPorts {
	table := &nftables.Table{Name: "bayplan-hostports", Family: nftables.TableFamilyIPv4}
	target := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	return &hostPorts{
		conn:  conn,
		table: table,
		addressed: &nftables.Set{
			Table: table, Name: "addressed", ID: 1, IsMap: true, Concatenation: true, DataType: target,
			KeyType: nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService),
		},
		ports: &nftables.Set{
			Table: table, Name: "ports", ID: 2, IsMap: true, Concatenation: true, DataType: target,
			KeyType: nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService),
		},
		hairpin: &nftables.Set{
			Table: table, Name: "hairpin", ID: 3, Concatenation: true,
			KeyType: nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr),
		},
	}
}

// withHostPorts connects to nftables of the namespace.
func (in *inside) withHostPorts(do func(*hostPorts) error) error {
	var conn *nftables.Conn
	err := in.ns.Do(func() (err error) {
		conn, err = nftables.New(nftables.AsLasting())
		return err
	})
	if err == nil {
		err = errors.Join(do(newHostPorts(conn)), conn.CloseLasting())
	}
	if err != nil {
		return fmt.Errorf("nftables in %s: %w", in.ns.Path(), err)
	}
	return nil
}

// changePorts makes the rules what they have to be and changes the mappings, all in one transaction. Of the pods in last nothing remains.
func (in *inside) changePorts(node netip.Addr, add, remove mappings, last []netip.Addr) error {
	return in.withHostPorts(func(h *hostPorts) error {
		h.conn.AddTable(h.table)
		for _, set := range []*nftables.Set{h.addressed, h.ports, h.hairpin} {
			if err := h.conn.AddSet(set, nil); err != nil {
				return err
			}
		}
		h.chains(node)
		var errs []error
		for addr, ports := range remove {
			errs = append(errs, h.each(addr, ports, h.conn.SetDeleteElements))
		}
		for _, addr := range last {
			errs = append(errs, h.conn.SetDeleteElements(h.hairpin, toItself(addr)))
		}
		for addr, ports := range add {
			errs = append(errs, h.each(addr, ports, h.conn.SetAddElements), h.conn.SetAddElements(h.hairpin, toItself(addr)))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return h.conn.Flush()
	})
}

// each does something with the elements of a pod's mappings.
func (h *hostPorts) each(pod netip.Addr, ports []PortMapping, do func(*nftables.Set, []nftables.SetElement) error) error {
	for _, m := range ports {
		set, element := h.element(pod, m)
		if err := do(set, []nftables.SetElement{element}); err != nil {
			return err
		}
	}
	return nil
}

// element is a mapping as the kernel has it, and where. Each part of a key or value fills four bytes.
func (h *hostPorts) element(pod netip.Addr, m PortMapping) (*nftables.Set, nftables.SetElement) {
	key := append([]byte{protocolNumbers[m.Protocol], 0, 0, 0}, portBytes(m.HostPort)...)
	val := append(pod.AsSlice(), portBytes(m.ContainerPort)...)
	if m.HostIP.IsValid() {
		return h.addressed, nftables.SetElement{Key: append(m.HostIP.AsSlice(), key...), Val: val}
	}
	return h.ports, nftables.SetElement{Key: key, Val: val}
}

func toItself(addr netip.Addr) []nftables.SetElement {
	return []nftables.SetElement{{Key: append(addr.AsSlice(), addr.AsSlice()...)}}
}

func portBytes(port uint16) []byte { return []byte{byte(port >> 8), byte(port), 0, 0} }

// listPorts reads what is published, as an earlier process left it.
func (in *inside) listPorts() (mappings, error) {
	all := mappings{}
	err := in.withHostPorts(func(h *hostPorts) error {
		tables, err := h.conn.ListTablesOfFamily(h.table.Family)
		if err != nil {
			return fmt.Errorf("tables: %w", err)
		}
		if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == h.table.Name }) {
			return nil // nothing was ever published
		}
		for _, set := range []*nftables.Set{h.addressed, h.ports} {
			elements, err := h.conn.GetSetElements(set)
			if err != nil {
				return fmt.Errorf("map %s: %w", set.Name, err)
			}
			for _, element := range elements {
				pod, m, err := parseElement(element)
				if err != nil {
					return fmt.Errorf("map %s: %w", set.Name, err)
				}
				all[pod] = append(all[pod], m)
			}
		}
		return nil
	})
	return all, err
}

// parseElement is the inverse of element.
func parseElement(e nftables.SetElement) (pod netip.Addr, m PortMapping, err error) {
	key := e.Key
	if len(key) == 12 {
		m.HostIP, _ = netip.AddrFromSlice(key[:4])
		key = key[4:]
	}
	if len(key) != 8 || len(e.Val) != 8 {
		return pod, m, fmt.Errorf("element %x: %x has another size than expected", e.Key, e.Val)
	}
	for name, number := range protocolNumbers {
		if number == key[0] {
			m.Protocol = name
		}
	}
	pod, _ = netip.AddrFromSlice(e.Val[:4])
	m.HostPort, m.ContainerPort = binary.BigEndian.Uint16(key[4:]), binary.BigEndian.Uint16(e.Val[4:])
	return pod, m, nil
}
