// Package network gives the nodes and pods of one cluster on this machine their addresses, inside network namespaces of the cluster's own.
//
// The fabric is one namespace for the control plane and one for each node, pinned under Config.RunDir, so that they outlive this process
// and are found again by the next Open. Every link is a veth pair that is made with each end in its place at once: none of them is ever
// in the machine's own namespace, and no link, route, rule or setting of the machine is touched. Removing the namespaces removes
// everything.
//
//	┌ control plane ────────────────┐      ┌ node ───────────────────────────────┐      ┌ pod ────────────────────┐
//	│ lo: 10.0.0.1                  │      │ eth0: 10.0.0.2                      │      │ eth0: 10.1.0.2          │
//	│ 10.0.0.2    dev nod...        │ veth │ default     via 10.0.0.1 dev eth0   │ veth │ default via 169.254.1.1 │
//	│ 10.1.0.0/24 via 10.0.0.2      ├──────┤ 10.1.0.2    dev pod...              ├──────┤                         │
//	│ 10.1.0.0/16 unreachable       │      │ 10.1.0.0/24 unreachable             │      │                         │
//	└───────────────────────────────┘      └─────────────────────────────────────┘      └─────────────────────────┘
//
// All links are point to point: an address is always a single one (/32), and a route leads to each. There is no bridge, so that nothing
// depends on bridge settings, and a packet between two pods of a node passes the node's filters like any other. The gateway 169.254.1.1 is the
// address of no interface. Both ends of a link know each other's hardware address as a permanent neighbour: no address is ever asked for,
// and none can be claimed by another. Packets keep their source address everywhere; one that comes in by a link to which no route for its source leads
// is dropped (strict reverse path filter), so that a pod can't use another's address.
//
// What must survive a crash is in Config.StateDir: the address of each node by its name, and those of each node's pods by their sandbox
// (package ipam). Everything is idempotent. SetUp and TearDown may be repeated, Open and AddNode bring what they find to the wanted state
// without disturbing traffic, and Node.Retain takes away what a crash left of sandboxes that are gone.
package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bayplan/bayplan/internal/node/network/ipam"
)

// DefaultMTU is the size of the largest packet, in bytes, where the configuration says nothing. It is that of Ethernet, and inside one machine
// segmentation offload makes larger ones needless.
const DefaultMTU = 1500

// Config describes the fabric of one cluster.
type Config struct {
	Cluster     string       // the cluster's id: interfaces and hardware addresses are derived from it
	RunDir      string       // where namespaces are pinned; gone after a restart of the machine
	StateDir    string       // where addresses are remembered; lasts
	NodeCIDR    netip.Prefix // addresses of the nodes; the first one is the control plane's
	PodCIDR     netip.Prefix // contains the pod CIDR of every node
	ServiceCIDR netip.Prefix // routed nowhere: a service proxy must translate these addresses
	MTU         int          // of every link, in bytes; 0 means DefaultMTU
}

// gateway is the next hop of every pod. It belongs to no interface.
var gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// complete fills defaults in and refuses what can't work.
func (c Config) complete() (Config, error) {
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	var errs []error
	if c.Cluster == "" {
		errs = append(errs, errors.New("a fabric needs its cluster's id in Config.Cluster"))
	}
	for _, dir := range []struct{ field, path string }{{"RunDir", c.RunDir}, {"StateDir", c.StateDir}} {
		if !filepath.IsAbs(dir.path) {
			errs = append(errs, fmt.Errorf("%s: %q is no absolute path", dir.field, dir.path))
		}
	}
	if c.NodeCIDR.IsValid() && c.NodeCIDR.Bits() > 30 {
		errs = append(errs, fmt.Errorf("NodeCIDR: %s has no address for the control plane and a node: want /30 or larger", c.NodeCIDR))
	}
	if c.MTU < 576 || c.MTU > 65535 {
		errs = append(errs, fmt.Errorf("MTU: %d is not from 576 to 65535 bytes", c.MTU))
	}
	errs = append(errs, c.checkPrefixes()...)
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("pod network: %w", err)
	}
	c.NodeCIDR, c.PodCIDR, c.ServiceCIDR = c.NodeCIDR.Masked(), c.PodCIDR.Masked(), c.ServiceCIDR.Masked()
	return c, nil
}

func (c Config) checkPrefixes() (errs []error) {
	type field struct {
		name   string
		prefix netip.Prefix
	}
	fields := []field{
		{"NodeCIDR", c.NodeCIDR}, {"PodCIDR", c.PodCIDR}, {"ServiceCIDR", c.ServiceCIDR},
		{"the link-local addresses", netip.MustParsePrefix("169.254.0.0/16")},
		{"the loopback addresses", netip.MustParsePrefix("127.0.0.0/8")},
		{"the multicast addresses", netip.MustParsePrefix("224.0.0.0/4")},
	}
	for i, f := range fields[:3] {
		if !f.prefix.IsValid() || !f.prefix.Addr().Is4() {
			errs = append(errs, fmt.Errorf("%s: want an IPv4 prefix, such as 10.1.0.0/16, and not %s", f.name, f.prefix))
			continue
		}
		for _, other := range fields[i+1:] {
			if f.prefix.Overlaps(other.prefix) {
				errs = append(errs, fmt.Errorf("%s: %s overlaps %s (%s)", f.name, f.prefix, other.name, other.prefix))
			}
		}
	}
	return errs
}

// checkNode refuses a node that can't be part of the fabric.
func (c Config) checkNode(name string, podCIDR netip.Prefix) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("pod network: node %q: the name is not usable: %s", name, strings.Join(problems, "; "))
	}
	if !podCIDR.IsValid() || podCIDR.Bits() < c.PodCIDR.Bits() || !c.PodCIDR.Contains(podCIDR.Addr()) {
		return fmt.Errorf("pod network: node %s: pod CIDR %s is not a part of the cluster's %s", name, podCIDR, c.PodCIDR)
	}
	if podCIDR.Bits() > 30 {
		return fmt.Errorf("pod network: node %s: pod CIDR %s has no address for a pod: want /30 or larger", name, podCIDR)
	}
	return nil
}

// controlPlaneAddress is the control plane's address among the nodes.
func (c Config) controlPlaneAddress() netip.Addr { return ipam.First(c.NodeCIDR) }

// interfaceName derives the name of an interface from what it is for, of three letters, and the ids of its owner. With 12 hexadecimal
// digits it has the 15 bytes that Linux allows; 48 bits keep the interfaces of a machine apart.
func (c Config) interfaceName(use string, ids ...string) string {
	return use + hex.EncodeToString(c.hash(use, ids...))[:12]
}

// hardwareAddress derives a locally administered unicast address, as interfaceName does a name.
func (c Config) hardwareAddress(use string, ids ...string) net.HardwareAddr {
	return append(net.HardwareAddr{0x02}, c.hash(use, ids...)[:5]...)
}

func (c Config) hash(use string, ids ...string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{c.Cluster, use}, ids...), "\x00")))
	return sum[:]
}

// Where namespaces are pinned. The name begins with a character that no node's name can have, so that folders of nodes may stand beside.
func namespaceDir(runDir string) string { return filepath.Join(runDir, "_network") }
func nodeDir(runDir string) string      { return filepath.Join(namespaceDir(runDir), "nodes") }
func controlPlanePath(runDir string) string {
	return filepath.Join(namespaceDir(runDir), "control-plane")
}
func nodePath(runDir, name string) string     { return filepath.Join(nodeDir(runDir), name) }
func podsStatePath(stateDir, n string) string { return filepath.Join(stateDir, "pods", n) }
func nodesStatePath(stateDir string) string   { return filepath.Join(stateDir, "nodes") }
func stateLockPath(stateDir string) string    { return filepath.Join(stateDir, "lock") }
