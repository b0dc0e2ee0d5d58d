package apiserver

import (
	"errors"
	"net"
	"sync"
)

// mergeListeners makes one listener of several, so that one server serves on the host's loopback and inside the cluster's network alike.
func mergeListeners(listeners []net.Listener) net.Listener {
	if len(listeners) == 1 {
		return listeners[0]
	}
	m := &merged{listeners: listeners, accepted: make(chan acceptance), closed: make(chan struct{})}
	for _, l := range listeners {
		go m.accept(l)
	}
	return m
}

type acceptance struct {
	conn net.Conn
	err  error
}

type merged struct {
	listeners []net.Listener
	accepted  chan acceptance
	closed    chan struct{}
	once      sync.Once
}

func (m *merged) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		select {
		case m.accepted <- acceptance{conn, err}:
		case <-m.closed:
			if conn != nil {
				_ = conn.Close()
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

func (m *merged) Accept() (net.Conn, error) {
	select {
	case a := <-m.accepted:
		return a.conn, a.err
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *merged) Close() error {
	var errs []error
	m.once.Do(func() {
		close(m.closed)
		for _, l := range m.listeners {
			errs = append(errs, l.Close())
		}
	})
	return errors.Join(errs...)
}

func (m *merged) Addr() net.Addr { return m.listeners[0].Addr() }
