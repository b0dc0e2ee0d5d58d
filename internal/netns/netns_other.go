//go:build !linux

package netns

import (
	"context"
	"net"
)

// Namespace is an open network namespace; there are none on this system.
type Namespace struct{}

// Create answers ErrUnsupported.
func Create(string) (*Namespace, error) { return nil, ErrUnsupported }

// Open answers ErrUnsupported.
func Open(string) (*Namespace, error) { return nil, ErrUnsupported }

// Delete answers ErrUnsupported.
func Delete(string) error { return ErrUnsupported }

// Path is empty.
func (*Namespace) Path() string { return "" }

// Close answers ErrUnsupported.
func (*Namespace) Close() error { return ErrUnsupported }

// Do answers ErrUnsupported.
func (*Namespace) Do(func() error) error { return ErrUnsupported }

// Dial answers ErrUnsupported.
func (*Namespace) Dial(_ context.Context, network, address string) (net.Conn, error) {
	if _, err := checkAddress(network, address, true); err != nil {
		return nil, err
	}
	return nil, ErrUnsupported
}

// Listen answers ErrUnsupported.
func (*Namespace) Listen(_ context.Context, network, address string) (net.Listener, error) {
	if _, err := checkAddress(network, address, false); err != nil {
		return nil, err
	}
	return nil, ErrUnsupported
}

// ListenPacket answers ErrUnsupported.
func (*Namespace) ListenPacket(_ context.Context, network, address string) (net.PacketConn, error) {
	if _, err := checkAddress(network, address, false); err != nil {
		return nil, err
	}
	return nil, ErrUnsupported
}

// WithFd answers ErrUnsupported.
func (*Namespace) WithFd(func(fd int) error) error { return ErrUnsupported }
