package network

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"k8s.io/klog/v2"
)

// ifbLink begins the name of the interface that a pod's outgoing packets pass so that they can be queued.
const ifbLink = "ifb"

// ifbModule is there when the module for interfaces of kind ifb has been loaded.
const ifbModule = "/sys/module/ifb"

// loadIfb loads the kernel's module for ifb unless that was done. The kernel would do so by itself, but then the module makes two interfaces in the
// machine's own namespace, and those are not ours to change. Where the kind is built into the kernel there is no module, and no harm in that.
func loadIfb(ctx context.Context, module, modprobe string) {
	if _, err := os.Stat(module); err == nil {
		return
	}
	if out, err := exec.CommandContext(ctx, modprobe, "ifb", "numifbs=0").CombinedOutput(); err != nil {
		klog.FromContext(ctx).V(4).Info("No module ifb was loaded", "err", err, "output", string(out))
	}
}

func (in *inside) ensureIfb(ctx context.Context, name string, mtu int) (netlink.Link, error) {
	link, err := in.link(name)
	if err != nil {
		return nil, err
	}
	if link == nil {
		loadIfb(ctx, ifbModule, "modprobe")
		link = &netlink.Ifb{LinkAttrs: netlink.NewLinkAttrs()}
		link.Attrs().Name, link.Attrs().MTU = name, mtu
		if err := in.LinkAdd(link); err != nil {
			return nil, fmt.Errorf("interface %s in %s, of kind ifb: %w", name, in.ns.Path(), err)
		}
		if err := in.LinkSetIP6AddrGenMode(link, genModeNone); err != nil && !noIPv6(err) {
			return nil, fmt.Errorf("interface %s in %s: switching IPv6 addresses off: %w", name, in.ns.Path(), err)
		}
	}
	if err := in.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("interface %s in %s: %w", name, in.ns.Path(), err)
	}
	return link, nil
}

// unlinkUnused removes an ifb that nothing is redirected to.
func (in *inside) unlinkUnused(link, ifb netlink.Link) error {
	redirected, err := in.redirected(link, ifb)
	if err != nil || redirected {
		return err
	}
	return in.unlink(ifb.Attrs().Name)
}
