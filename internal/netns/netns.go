// Package netns makes network namespaces that have a name, and sockets inside them.
//
// A network namespace lives as long as a process, a socket or a mount refers to it. Create pins a new one by a bind mount at a path that
// the caller chooses, so that it outlives this process; Create and Open find it there again, and Delete takes the pin away.
//
// A socket belongs for good to the namespace of the thread that made it. Dial, Listen and ListenPacket therefore enter the namespace
// only to make the socket; what follows (connecting, accepting, reading, writing) is done by ordinary goroutines on any thread. Do runs a
// function on a thread inside the namespace, for everything else that looks at the thread's namespace, such as /proc/sys/net.
//
// Names are never resolved: the resolver's own sockets and /etc/resolv.conf would belong to the machine and not to the namespace.
//
// Network namespaces exist on Linux only. On other systems every function answers ErrUnsupported.
package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// ErrUnsupported is what every function answers on a system without network namespaces.
var ErrUnsupported = fmt.Errorf("network namespaces need Linux: run Bayplan there, or use simulated nodes: %w", errors.ErrUnsupported)

// checkAddress refuses what would need a resolver. An address without a host stands for all addresses of the namespace and is fine for
// listening, not for dialing. It returns the address as the net package wants it.
func checkAddress(network, address string, dial bool) (string, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return "", fmt.Errorf("network %q of address %q: only tcp, tcp4, tcp6, udp, udp4 and udp6 can be used inside a network namespace", network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("address %q: want IP:port: %w", address, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("address %q: port %q is not a number from 0 to 65535", address, port)
	}
	if dial && number == 0 {
		return "", fmt.Errorf("address %q: port 0 can't be dialed", address)
	}
	if host == "" && !dial {
		return address, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "", fmt.Errorf("address %q: %q is not an IP address, and names are not resolved inside a network namespace", address, host)
	}
	if zone := ip.Zone(); strings.Trim(zone, "0123456789") != "" {
		return "", fmt.Errorf("address %q: give the zone %q as the number of an interface of the namespace, not by name", address, zone)
	}
	ip = ip.Unmap()
	if family := network[3:]; family == "4" && !ip.Is4() || family == "6" && ip.Is4() {
		return "", fmt.Errorf("address %q: not an address of network %s", address, network)
	}
	return net.JoinHostPort(ip.String(), port), nil
}
