package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/keylock"
	"github.com/bayplan/bayplan/internal/netns"
	"github.com/bayplan/bayplan/internal/node/network/ipam"
)

// Node is one node's part of the fabric. Its methods may be called by many goroutines at once.
type Node struct {
	name    string
	address netip.Addr
	podCIDR netip.Prefix
	fabric  *Fabric
	ns      *netns.Namespace

	life sync.RWMutex // held for reading by whatever works on the node, for writing by close
	in   *inside      // nil when closed
	pool *ipam.Pool   // addresses of pods by sandbox

	sandboxes keylock.Locks // one change of a sandbox at a time
	mu        sync.Mutex    // guards published and its rules
	published mappings
}

// Name is the node's name.
func (n *Node) Name() string { return n.name }

// Address is the node's own address, by which the control plane, other nodes and all pods reach it.
func (n *Node) Address() netip.Addr { return n.address }

// PodCIDR is where the addresses of the node's pods come from.
func (n *Node) PodCIDR() netip.Prefix { return n.podCIDR }

// Namespace is the node's namespace, which is also that of its pods with hostNetwork.
func (n *Node) Namespace() *netns.Namespace { return n.ns }

func (n *Node) open(ctx context.Context) (err error) {
	if n.pool, err = ipam.Open(podsStatePath(n.fabric.config.StateDir, n.name), n.podCIDR); err != nil {
		return err
	}
	if n.ns, err = netns.Create(nodePath(n.fabric.config.RunDir, n.name)); err != nil {
		return err
	}
	if n.in, err = enter(n.ns); err != nil {
		return err
	}
	if _, err := n.in.loopback(); err != nil {
		return err
	}
	if err := n.in.set(routerSettings...); err != nil {
		return err
	}
	if n.published, err = n.in.listPorts(); err != nil {
		return err
	}
	return n.join(ctx)
}

// join links the node to the control plane and sets the routes of both sides.
func (n *Node) join(ctx context.Context) error {
	config, hub := n.fabric.config, n.fabric.hub
	near := &end{in: hub, name: config.interfaceName("nod", n.name), mac: config.hardwareAddress("hub", n.name)}
	far := &end{in: n.in, name: "eth0", mac: config.hardwareAddress("nod", n.name)}
	if err := pair(ctx, near, far, config.MTU); err != nil {
		return err
	}
	controlPlane := n.fabric.Address()
	err := errors.Join(
		n.in.address(far.link, n.address),
		n.in.neighbour(far.link, controlPlane, near.mac),
		hub.neighbour(near.link, n.address, far.mac),
	)
	if err != nil {
		return err
	}
	return errors.Join(
		n.in.refuse(n.podCIDR),
		far.routes(through(far.link, everything(n.address), controlPlane, n.address)),
		near.routes(direct(near.link, n.address, controlPlane), through(near.link, n.podCIDR, n.address, controlPlane)),
	)
}

// SetUp gives the sandbox an address and joins its namespace, which is pinned at netnsPath, to the node. It may be repeated and then
// returns the same address. The address is on disk before any packet can use it.
func (n *Node) SetUp(ctx context.Context, sandboxID, netnsPath string) ([]netip.Addr, error) {
	done, err := n.begin(ctx, sandboxID)
	if err != nil {
		return nil, err
	}
	defer done()
	_, had := n.pool.Lookup(sandboxID)
	addr, err := n.pool.Take(sandboxID)
	if err != nil {
		return nil, fmt.Errorf("pod network of node %s: %w", n.name, err)
	}
	if err := n.attach(ctx, sandboxID, netnsPath, addr); err != nil {
		if !had {
			err = errors.Join(err, n.release(sandboxID))
		}
		return nil, fmt.Errorf("pod network of node %s: %w", n.name, err)
	}
	klog.FromContext(ctx).V(4).Info("Pod has an address", "sandbox", sandboxID, "node", n.name, "address", addr)
	return []netip.Addr{addr}, nil
}

// TearDown takes the sandbox's link and address away. It may be repeated, also for sandboxes that never were; the namespace need not exist any more.
func (n *Node) TearDown(ctx context.Context, sandboxID, netnsPath string) error {
	done, err := n.begin(ctx, sandboxID)
	if err != nil {
		return err
	}
	defer done()
	if err := n.release(sandboxID); err != nil {
		return fmt.Errorf("pod network: sandbox %s on node %s: %w", sandboxID, n.name, err)
	}
	klog.FromContext(ctx).V(4).Info("Pod's address is free", "sandbox", sandboxID, "node", n.name)
	return nil
}

// Retain takes away whatever belongs to none of the given sandboxes: what TearDown was not called for, because of a crash. It is for the start, before
// new sandboxes are set up.
func (n *Node) Retain(ctx context.Context, liveSandboxIDs []string) error {
	n.life.RLock()
	defer n.life.RUnlock()
	if err := n.usable(ctx); err != nil {
		return err
	}
	var errs []error
	for _, sandboxID := range n.pool.Owners() {
		if !slices.Contains(liveSandboxIDs, sandboxID) {
			unlock := n.sandboxes.Lock(sandboxID)
			errs = append(errs, n.release(sandboxID))
			unlock()
			klog.FromContext(ctx).V(2).Info("Took back the address of a sandbox that is gone", "sandbox", sandboxID, "node", n.name)
		}
	}
	errs = append(errs, n.unlinkStrays(liveSandboxIDs), n.unpublishStrays())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pod network: node %s: %w", n.name, err)
	}
	return nil
}

// unlinkStrays removes links of pods that no live sandbox has, such as those of an earlier state directory.
func (n *Node) unlinkStrays(liveSandboxIDs []string) error {
	live := map[string]bool{}
	for _, sandboxID := range liveSandboxIDs {
		for _, name := range n.interfaces(sandboxID) {
			live[name] = true
		}
	}
	links, err := n.in.links()
	if err != nil {
		return err
	}
	var errs []error
	for _, link := range links {
		name := link.Attrs().Name
		if (strings.HasPrefix(name, podLink) || strings.HasPrefix(name, ifbLink)) && !live[name] {
			errs = append(errs, n.in.unlink(name))
		}
	}
	return errors.Join(errs...)
}

// Addresses tells which addresses the sandbox has; none is no error.
func (n *Node) Addresses(sandboxID string) []netip.Addr {
	if addr, ok := n.pool.Lookup(sandboxID); ok {
		return []netip.Addr{addr}
	}
	return nil
}

// begin starts a change of a sandbox; done ends it.
func (n *Node) begin(ctx context.Context, sandboxID string) (done func(), err error) {
	n.life.RLock()
	if err := n.usable(ctx); err != nil {
		n.life.RUnlock()
		return nil, err
	}
	unlock := n.sandboxes.Lock(sandboxID)
	return func() {
		unlock()
		n.life.RUnlock()
	}, nil
}

// usable refuses work after the end of the context or of the network.
func (n *Node) usable(ctx context.Context) error {
	if n.in == nil {
		return fmt.Errorf("pod network: node %s: the network is closed: %w", n.name, os.ErrClosed)
	}
	return ctx.Err()
}

// close waits for what is under way.
func (n *Node) close() error {
	n.life.Lock()
	defer n.life.Unlock()
	var errs []error
	if n.in != nil {
		errs = append(errs, n.in.close())
		n.in = nil
	}
	if n.pool != nil {
		errs = append(errs, n.pool.Close())
	}
	return errors.Join(errs...)
}
