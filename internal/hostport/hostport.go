// Package hostport says which ports of a node containers want, and when two of them are the same. Real and simulated nodes let pods in by it.
package hostport

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Port is a port of the node; without an address it is that of all.
type Port struct {
	Protocol corev1.Protocol
	IP       string
	Port     int32
}

// Of are the ports of the node that a container wants.
func Of(c *corev1.Container) (out []Port) {
	for _, p := range c.Ports {
		if p.HostPort == 0 {
			continue
		}
		port := Port{p.Protocol, p.HostIP, p.HostPort}
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.IP == "0.0.0.0" {
			port.IP = ""
		}
		out = append(out, port)
	}
	return out
}

// Clash reports whether one of the ports is also among the others.
func Clash(ports, others []Port) bool {
	return slices.ContainsFunc(others, func(other Port) bool { return slices.ContainsFunc(ports, other.overlaps) })
}

func (p Port) overlaps(other Port) bool {
	return p.Port == other.Port && p.Protocol == other.Protocol && (p.IP == other.IP || p.IP == "" || other.IP == "")
}
