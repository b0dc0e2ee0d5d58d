package network

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bayplan/bayplan/internal/netns"
)

// inside is a namespace with a netlink connection into it. Every change is a kernel call in that namespace.
type inside struct {
	*netlink.Handle
	ns *netns.Namespace
}

// enter connects to the namespace, which it owns from then on: close closes both.
func enter(ns *netns.Namespace) (*inside, error) {
	in, err := connect(ns)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return in, nil
}

func connect(ns *netns.Namespace) (*inside, error) {
	in := &inside{ns: ns}
	err := ns.Do(func() (err error) {
		in.Handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netlink in %s: %w", ns.Path(), err)
	}
	return in, nil
}

// apart does something by a connection of its own. The kernel takes some tens of milliseconds to remove an interface, in which it answers
// nothing else on the same connection; on several it removes as many interfaces in the same time.
func (in *inside) apart(do func(*inside) error) error {
	own, err := connect(in.ns)
	if err != nil {
		return err
	}
	defer own.Handle.Close()
	return do(own)
}

// close closes both. A handle without sockets would work on the caller's own namespace, so there is none any more.
func (in *inside) close() error {
	in.Handle.Close()
	in.Handle = nil
	return in.ns.Close()
}

// link finds an interface; nil when there is none of that name.
func (in *inside) link(name string) (netlink.Link, error) {
	link, err := in.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s in %s: %w", name, in.ns.Path(), err)
	}
	return link, nil
}

// unlink removes an interface and, when it is an end of a veth pair, the other end with it. None of that name is fine.
func (in *inside) unlink(name string) error {
	link, err := in.link(name)
	if err != nil || link == nil {
		return err
	}
	if err := in.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing interface %s in %s: %w", name, in.ns.Path(), err)
	}
	return nil
}

// loopback brings lo up and returns it.
func (in *inside) loopback() (netlink.Link, error) {
	lo, err := in.LinkByName("lo")
	if err == nil {
		err = in.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("interface lo in %s: %w", in.ns.Path(), err)
	}
	return lo, nil
}

// dumpTries bounds how often a list is asked for anew.
const dumpTries = 100

// dump asks for a list until the kernel says that nothing changed while it was read.
func dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range dumpTries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// links lists the interfaces.
func (in *inside) links() ([]netlink.Link, error) {
	links, err := dump(in.LinkList)
	if err != nil {
		return nil, fmt.Errorf("interfaces in %s: %w", in.ns.Path(), err)
	}
	return links, nil
}
