package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/netns"
	"github.com/bayplan/bayplan/internal/node/network/ipam"
)

// Fabric is the network of one cluster on this machine. Its methods may be called by many goroutines at once.
type Fabric struct {
	config Config
	lock   *os.File // held by flock while the fabric is open
	ns     *netns.Namespace

	mu    sync.Mutex
	hub   *inside    // the control plane's namespace; nil when closed
	pool  *ipam.Pool // addresses of nodes by name
	nodes map[string]*Node
}

// Open makes the control plane's namespace, or adopts the one that an earlier process left, and restores what is known of addresses. Nodes
// are adopted by AddNode. It needs root. Only one process can have a fabric open.
func Open(ctx context.Context, config Config) (*Fabric, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	f := &Fabric{config: config, nodes: map[string]*Node{}}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("pod network of cluster %s: %w", config.Cluster, err), f.Close())
	}
	klog.FromContext(ctx).V(2).Info("Pod network is up", "controlPlane", f.Address(), "namespace", f.ControlPlane().Path())
	return f, nil
}

func (f *Fabric) open() (err error) {
	if err := os.MkdirAll(podsStatePath(f.config.StateDir, ""), 0o700); err != nil {
		return err
	}
	if f.lock, err = lockFile(stateLockPath(f.config.StateDir)); err != nil {
		return err
	}
	if f.pool, err = ipam.Open(nodesStatePath(f.config.StateDir), f.config.NodeCIDR); err != nil {
		return err
	}
	if f.ns, err = netns.Create(controlPlanePath(f.config.RunDir)); err != nil {
		return err
	}
	if f.hub, err = enter(f.ns); err != nil {
		return err
	}
	return f.setUpHub()
}

// lockFile takes the lock that keeps a second process away. It goes with the process, however that ends.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: another process has this network open: %w", path, err)
	}
	return file, nil
}

// setUpHub gives the control plane its address and makes its namespace the router between nodes.
func (f *Fabric) setUpHub() error {
	lo, err := f.hub.loopback()
	if err != nil {
		return err
	}
	if err := f.hub.set(routerSettings...); err != nil {
		return err
	}
	if err := f.hub.address(lo, f.Address()); err != nil {
		return err
	}
	return f.hub.refuse(f.config.PodCIDR, f.config.ServiceCIDR)
}

// ControlPlane is the namespace of the control plane, from which every node and pod can be reached.
func (f *Fabric) ControlPlane() *netns.Namespace { return f.ns }

// Address is the control plane's address, which every node and pod can reach.
func (f *Fabric) Address() netip.Addr { return f.config.controlPlaneAddress() }

// Nodes lists the nodes that have a namespace, also those that an earlier process left and that AddNode was not called for.
func (f *Fabric) Nodes() ([]string, error) {
	entries, err := os.ReadDir(nodeDir(f.config.RunDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("pod network: nodes: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// AddNode makes the node's namespace and joins it to the control plane's, or adopts what is there. A name keeps its address until
// RemoveNode. Calling it again for the same node returns the same Node.
func (f *Fabric) AddNode(ctx context.Context, name string, podCIDR netip.Prefix) (*Node, error) {
	podCIDR = podCIDR.Masked()
	if err := f.config.checkNode(name, podCIDR); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hub == nil {
		return nil, fmt.Errorf("pod network: node %s: the network is closed: %w", name, os.ErrClosed)
	}
	for _, other := range f.nodes {
		if other.name == name && other.podCIDR == podCIDR {
			return other, nil
		}
		if other.podCIDR.Overlaps(podCIDR) || other.name == name {
			return nil, fmt.Errorf("pod network: node %s with pod CIDR %s: node %s has %s", name, podCIDR, other.name, other.podCIDR)
		}
	}
	address, err := f.pool.Take(name)
	if err != nil {
		return nil, fmt.Errorf("pod network: node %s: %w", name, err)
	}
	n := &Node{name: name, address: address, podCIDR: podCIDR, fabric: f}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("pod network: node %s: %w", name, err), n.close())
	}
	f.nodes[name] = n
	klog.FromContext(ctx).V(2).Info("Node is in the pod network", "node", name, "address", address, "podCIDR", podCIDR)
	return n, nil
}

// Close lets go of everything and leaves it running: namespaces, addresses and pods stay for the next Open.
func (f *Fabric) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for name, n := range f.nodes {
		errs = append(errs, n.close())
		delete(f.nodes, name)
	}
	if f.hub != nil {
		errs = append(errs, f.hub.close())
	}
	if f.pool != nil {
		errs = append(errs, f.pool.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	f.hub, f.pool, f.lock = nil, nil, nil
	return errors.Join(errs...)
}
