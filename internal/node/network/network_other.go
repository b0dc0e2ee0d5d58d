//go:build !linux

package network

import (
	"context"
	"net/netip"

	"github.com/bayplan/bayplan/internal/netns"
)

// Fabric is the network of one cluster on this machine; there is none on this system.
type Fabric struct{}

// Open refuses a wrong configuration, and answers netns.ErrUnsupported otherwise.
func Open(_ context.Context, config Config) (*Fabric, error) {
	if _, err := config.complete(); err != nil {
		return nil, err
	}
	return nil, netns.ErrUnsupported
}

// Remove has nothing to remove.
func Remove(context.Context, string) error { return nil }

// ControlPlane is nil.
func (*Fabric) ControlPlane() *netns.Namespace { return nil }

// Address is the zero address.
func (*Fabric) Address() netip.Addr { return netip.Addr{} }

// Nodes is empty.
func (*Fabric) Nodes() ([]string, error) { return nil, nil }

// AddNode answers netns.ErrUnsupported.
func (*Fabric) AddNode(context.Context, string, netip.Prefix) (*Node, error) {
	return nil, netns.ErrUnsupported
}

// RemoveNode has nothing to remove.
func (*Fabric) RemoveNode(context.Context, string) error { return nil }

// Remove has nothing to remove.
func (*Fabric) Remove(context.Context) error { return nil }

// Close has nothing to close.
func (*Fabric) Close() error { return nil }

// Node is one node's part of the fabric.
type Node struct{}

// Name is empty.
func (*Node) Name() string { return "" }

// Address is the zero address.
func (*Node) Address() netip.Addr { return netip.Addr{} }

// PodCIDR is the zero prefix.
func (*Node) PodCIDR() netip.Prefix { return netip.Prefix{} }

// Namespace is nil.
func (*Node) Namespace() *netns.Namespace { return nil }

// SetUp answers netns.ErrUnsupported.
func (*Node) SetUp(context.Context, string, string) ([]netip.Addr, error) {
	return nil, netns.ErrUnsupported
}

// TearDown has nothing to take away.
func (*Node) TearDown(context.Context, string, string) error { return nil }

// Retain has nothing to take away.
func (*Node) Retain(context.Context, []string) error { return nil }

// Addresses is empty.
func (*Node) Addresses(string) []netip.Addr { return nil }

// Shape answers netns.ErrUnsupported.
func (*Node) Shape(context.Context, string, uint64, uint64) error { return netns.ErrUnsupported }

// Publish answers netns.ErrUnsupported.
func (*Node) Publish(context.Context, string, []PortMapping) error { return netns.ErrUnsupported }
