package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeProtocol marks the routes of this package, so that it removes no others.
const routeProtocol netlink.RouteProtocol = 98

// address makes addr the only global address of the interface, apart from loopback's 127.0.0.1.
func (in *inside) address(link netlink.Link, addr netip.Addr) error {
	have, err := dump(func() ([]netlink.Addr, error) { return in.AddrList(link, family(addr)) })
	if err != nil {
		return fmt.Errorf("addresses of %s in %s: %w", link.Attrs().Name, in.ns.Path(), err)
	}
	want := single(addr)
	found := false
	for _, a := range have {
		switch {
		case a.IPNet.String() == want.String():
			found = true
		case a.Scope == unix.RT_SCOPE_UNIVERSE:
			if err := in.AddrDel(link, &a); err != nil {
				return fmt.Errorf("removing address %s of %s in %s: %w", a.IPNet, link.Attrs().Name, in.ns.Path(), err)
			}
		}
	}
	if found {
		return nil
	}
	if err := in.AddrAdd(link, &netlink.Addr{IPNet: want}); err != nil {
		return fmt.Errorf("giving %s in %s the address %s: %w", link.Attrs().Name, in.ns.Path(), addr, err)
	}
	return nil
}

// neighbour tells the kernel for good which hardware address addr has on the link.
func (in *inside) neighbour(link netlink.Link, addr netip.Addr, mac net.HardwareAddr) error {
	err := in.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: family(addr), State: netlink.NUD_PERMANENT, IP: addr.AsSlice(), HardwareAddr: mac,
	})
	if err != nil {
		return fmt.Errorf("neighbour %s of %s in %s: %w", addr, link.Attrs().Name, in.ns.Path(), err)
	}
	return nil
}

// routes sets routes.
func (in *inside) routes(want []netlink.Route) error {
	for i := range want {
		want[i].Protocol = routeProtocol
		if err := in.RouteReplace(&want[i]); err != nil {
			return fmt.Errorf("route %s in %s: %w", want[i], in.ns.Path(), err)
		}
	}
	return nil
}

// prune removes routes of this package that stale accepts and that are not wanted.
func (in *inside) prune(want []netlink.Route, stale func(netlink.Route) bool) error {
	have, err := dump(func() ([]netlink.Route, error) {
		return in.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return fmt.Errorf("routes in %s: %w", in.ns.Path(), err)
	}
	for _, route := range have {
		same := func(w netlink.Route) bool { return w.Dst.String() == route.Dst.String() && w.Type == route.Type }
		if !stale(route) || slices.ContainsFunc(want, same) {
			continue
		}
		if err := in.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("removing route %s in %s: %w", route, in.ns.Path(), err)
		}
	}
	return nil
}

// routes sets the routes by way of an end of a link, and no others.
func (e *end) routes(want ...netlink.Route) error {
	if err := e.in.routes(want); err != nil || e.made {
		return err
	}
	return e.in.prune(want, func(r netlink.Route) bool { return r.LinkIndex == e.link.Attrs().Index })
}

// refuse makes the prefixes unreachable, and no others. A narrower route goes first.
func (in *inside) refuse(prefixes ...netip.Prefix) error {
	var want []netlink.Route
	for _, prefix := range prefixes {
		want = append(want, unreachable(prefix))
	}
	if err := in.routes(want); err != nil {
		return err
	}
	return in.prune(want, func(r netlink.Route) bool { return r.Type == unix.RTN_UNREACHABLE })
}

// direct is the route to an address at the other end of the link; packets of this namespace go with the source src.
func direct(link netlink.Link, addr, src netip.Addr) netlink.Route {
	return netlink.Route{LinkIndex: link.Attrs().Index, Dst: single(addr), Src: ipOf(src), Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
}

// through is the route to a prefix by way of the address at the other end of the link.
func through(link netlink.Link, prefix netip.Prefix, via, src netip.Addr) netlink.Route {
	return netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(prefix), Gw: ipOf(via), Src: ipOf(src), Flags: int(netlink.FLAG_ONLINK), Type: unix.RTN_UNICAST,
	}
}

// unreachable makes the kernel answer at once for addresses that no narrower route leads to, instead of sending packets on their default way.
func unreachable(prefix netip.Prefix) netlink.Route {
	return netlink.Route{Dst: ipNet(prefix), Type: unix.RTN_UNREACHABLE}
}

func family(addr netip.Addr) int {
	if addr.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

// everything is the prefix of all addresses of the family of addr.
func everything(addr netip.Addr) netip.Prefix {
	prefix, _ := addr.Prefix(0)
	return prefix
}

func single(addr netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(addr, addr.BitLen())) }

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// ipOf is nil for the zero Addr.
func ipOf(addr netip.Addr) net.IP { return net.IP(addr.AsSlice()) }
