package cluster

import "net"

// servingAddresses are what the certificate of a server that is bound to an address must say beside loopback: that address, or all of this machine.
func servingAddresses(bind string) []net.IP {
	ip := net.ParseIP(bind)
	switch {
	case ip == nil || ip.IsLoopback():
		return nil
	case !ip.IsUnspecified():
		return []net.IP{ip}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []net.IP
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = append(out, n.IP)
		}
	}
	return out
}

// clientAddress is where a client on this machine reaches what listens on address.
func clientAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	switch ip := net.ParseIP(host); {
	case ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// advertisedAddress is where other machines reach what listens on address: an address of this machine in place of all of them.
func advertisedAddress(address string, machine []net.IP) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || len(machine) == 0 {
		return clientAddress(address)
	}
	return net.JoinHostPort(machine[0].String(), port)
}
