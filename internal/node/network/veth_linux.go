package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// genModeNone is the kernel's IN6_ADDR_GEN_MODE_NONE.
const genModeNone = 1

// How often, and how many times at most, ready looks at a link: a second in all.
const (
	readyPause = time.Millisecond
	readyTries = 1000
)

// end is one end of a veth pair.
type end struct {
	in   *inside
	name string
	mac  net.HardwareAddr
	link netlink.Link // set by pair
	made bool         // by this call of pair: nothing is on it yet
}

// pair makes a veth pair, or takes the one that is there, and brings it up. A half of ours that lost its other half is replaced; an interface of that
// name that isn't ours is left alone and is an error.
func pair(ctx context.Context, near, far *end, mtu int) error {
	found := 0
	for _, e := range []*end{near, far} {
		link, err := e.in.link(e.name)
		if err != nil {
			return err
		}
		if e.link = link; link == nil {
			continue
		}
		if !e.ours() {
			return fmt.Errorf("interface %s in %s is there already and was not made by Bayplan", e.name, e.in.ns.Path())
		}
		found++
	}
	if found < 2 || near.link.Attrs().ParentIndex != far.link.Attrs().Index || far.link.Attrs().ParentIndex != near.link.Attrs().Index {
		if err := join(near, far, mtu); err != nil {
			return err
		}
	}
	if err := errors.Join(near.up(mtu), far.up(mtu)); err != nil {
		return err
	}
	return errors.Join(near.ready(ctx), far.ready(ctx))
}

// join makes the pair, each end at once in its own namespace, after removing what is left of an earlier one.
func join(near, far *end, mtu int) error {
	for _, e := range []*end{near, far} {
		if err := e.in.unlink(e.name); err != nil {
			return err
		}
	}
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: far.name, PeerHardwareAddr: far.mac, PeerMTU: uint32(mtu)}
	veth.Name, veth.HardwareAddr, veth.MTU = near.name, near.mac, mtu
	err := far.in.ns.WithFd(func(fd int) error {
		veth.PeerNamespace = netlink.NsFd(fd)
		return near.in.LinkAdd(veth)
	})
	if err != nil {
		return fmt.Errorf("joining %s and %s by a veth pair: %w", near.in.ns.Path(), far.in.ns.Path(), err)
	}
	for _, e := range []*end{near, far} {
		if e.link, err = e.in.LinkByName(e.name); err != nil {
			return fmt.Errorf("interface %s in %s: %w", e.name, e.in.ns.Path(), err)
		}
		e.made = true
		// Without an address of its own the link is silent until it is used: no neighbour discovery, no router solicitations.
		if err := e.in.LinkSetIP6AddrGenMode(e.link, genModeNone); err != nil && !noIPv6(err) {
			return fmt.Errorf("interface %s in %s: switching IPv6 addresses off: %w", e.name, e.in.ns.Path(), err)
		}
	}
	return nil
}

// noIPv6 tells whether the error means that the kernel runs without IPv6.
func noIPv6(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

func (e *end) ours() bool {
	return e.link.Type() == "veth" && bytes.Equal(e.link.Attrs().HardwareAddr, e.mac)
}

// up sets what may have changed since the link was made.
func (e *end) up(mtu int) error {
	attrs := e.link.Attrs()
	var err error
	if attrs.MTU != mtu {
		err = e.in.LinkSetMTU(e.link, mtu)
	}
	if attrs.Flags&net.FlagUp == 0 {
		err = errors.Join(err, e.in.LinkSetUp(e.link))
	}
	if err != nil {
		return fmt.Errorf("interface %s in %s: %w", e.name, e.in.ns.Path(), err)
	}
	return nil
}

// ready waits until the link carries packets. The kernel puts the end that came up first to work only after it has looked at the other
// one, some time later, and drops what is sent until then: a connection that loses its first packet takes a second longer. Since Linux 6.8 the question
// itself makes the kernel look; earlier ones have to be asked again.
func (e *end) ready(ctx context.Context) error {
	for range readyTries {
		link, err := e.in.LinkByIndex(e.link.Attrs().Index)
		if err != nil {
			return fmt.Errorf("interface %s in %s: %w", e.name, e.in.ns.Path(), err)
		}
		if link.Attrs().OperState == netlink.OperUp {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyPause):
		}
	}
	return fmt.Errorf("interface %s in %s does not come up", e.name, e.in.ns.Path())
}
