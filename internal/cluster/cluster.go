// Package cluster puts the parts of a cluster together, each of which can also run alone: it starts them in order, waits until each is ready, and stops them in
// the reverse order.
//
//	data directory ─► store ─► API server ─► controllers, scheduler ─► nodes ─► ready
//
// A running cluster answers its administrator on a socket in the data directory (control.go), by which Down, SaveSnapshot and Inspect find it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/apiserver"
	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/node/network"
	"github.com/bayplan/bayplan/internal/store"
)

// Config says what a cluster consists of.
type Config struct {
	DataDir     string
	BindAddress string
	// Port 0 takes a free one.
	Port int
	// Nodes is how many nodes run containers; they need Linux and root.
	Nodes int
	// Simulated are nodes behind which no machine stands; without it Nodes that ask for being simulated are not.
	Simulated *Simulated
	// Controllers are the names of those that run, all when empty.
	Controllers []string
	// NoScheduler leaves pods to a scheduler that runs elsewhere.
	NoScheduler bool
	// PKIDir holds keys and certificates; pki in the data directory when empty. Servers that share an etcd cluster need the same.
	PKIDir string
	// Etcd, where it has endpoints, keeps the state in place of the embedded etcd. Several servers may then run side by side.
	Etcd store.External
	// CompactionInterval is how long old revisions are kept; DefaultCompactionInterval when it is zero.
	CompactionInterval time.Duration
	// Admission says which admission plugins are on, where that is not as usual.
	Admission apiserver.Admission
	// Version is that of the program and Flags the values of its flags, none of them secret, both for those who look into it.
	Version string
	Flags   map[string]string
	// Report is told what was ready when.
	Report func(Mark)
}

// Cluster is a running cluster.
type Cluster struct {
	config  Config
	data    *datadir.Dir
	control *controlPlane
	admin   *rest.Config
	fabric  *network.Fabric
	// simulation is nil without simulated nodes.
	simulation *simulation
	times      *timeline
	// undo stops what was started, the last first.
	undo []func(context.Context) error

	// stopAsked is closed when the administrator wants the cluster to stop.
	stopAsked chan struct{}
	askOnce   sync.Once
	// inUse is held for reading by administrators' requests that use the store; stateContext ends them.
	inUse        sync.RWMutex
	state        *store.Store
	stateContext context.Context
	endState     context.CancelFunc
}

// ErrStopAsked ends a start that the administrator stopped.
var ErrStopAsked = errors.New("stopped by `bayplan down`")

// Start starts a cluster and returns when it can be used. An error leaves nothing running, and no data directory that was not there.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	c := &Cluster{config: config, times: &timeline{begun: time.Now(), report: config.Report}, stopAsked: make(chan struct{})}
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.stopAsked:
			cancel(ErrStopAsked)
		case <-starting.Done():
		}
	}()
	if err := c.start(starting); err != nil {
		return nil, errors.Join(err, c.abandon(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.data, err = datadir.Open(c.config.DataDir); err != nil {
		return err
	}
	if err := c.startControl(); err != nil {
		return err
	}
	listener, err := listen(c.config.BindAddress, c.config.Port)
	if err != nil {
		return err
	}
	plane := c.planeConfig(listener)
	if c.config.Nodes > 0 {
		err = c.openNetwork(ctx, &plane)
	} else {
		err = endFormerCluster(ctx, c.data)
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c.openSimulation(&plane)
	if c.control, err = startControlPlane(ctx, plane, c.times); err != nil {
		return errors.Join(err, closeAll(plane.listeners))
	}
	c.lend(c.control.state)
	c.onStop(func(context.Context) error { c.endLoans(); c.control.stop(); return nil })
	if c.admin, err = c.control.adminConfig(); err != nil {
		return err
	}
	if c.simulation != nil {
		if err := c.ensureDefinitions(ctx); err != nil {
			return err
		}
	}
	if err := c.startParts(ctx); err != nil {
		return err
	}
	if err := c.awaitSimulated(ctx); err != nil || c.config.Nodes == 0 {
		return err
	}
	return c.startNodes(ctx)
}

func (c *Cluster) planeConfig(listener net.Listener) controlPlaneConfig {
	plane := controlPlaneConfig{
		pkiDir: c.config.PKIDir, listeners: []net.Listener{listener}, dial: (&net.Dialer{}).DialContext,
		addresses: servingAddresses(c.config.BindAddress), flags: c.config.Flags, admission: c.config.Admission,
		store: store.Options{
			Dir: c.data.Path("etcd"), External: c.config.Etcd, CompactionInterval: c.config.CompactionInterval, ReadyTimeout: storeReadyTimeout,
		},
	}
	if plane.pkiDir == "" {
		plane.pkiDir = c.data.Path("pki")
	}
	if plane.store.CompactionInterval == 0 {
		plane.store.CompactionInterval = DefaultCompactionInterval
	}
	if len(c.config.Etcd.Endpoints) > 0 {
		plane.store.ReadyTimeout = externalReadyTimeout
	}
	return plane
}

func (c *Cluster) onStop(f func(context.Context) error) { c.undo = append(c.undo, f) }

// Stop stops the cluster in order. ctx bounds how long pods are waited for.
func (c *Cluster) Stop(ctx context.Context) error {
	err := c.undoAll(ctx)
	if c.data == nil {
		return err
	}
	err = errors.Join(err, c.data.Close())
	c.data = nil
	return err
}

// abandon stops what a start got to. A data directory that it made goes too, unless something in it may still be used.
func (c *Cluster) abandon(ctx context.Context) error {
	err := c.undoAll(ctx)
	switch {
	case c.data == nil:
		return err
	case err == nil && c.data.Fresh():
		return c.data.Discard()
	}
	return errors.Join(err, c.data.Close())
}

func (c *Cluster) undoAll(ctx context.Context) error {
	var errs []error
	for i := len(c.undo) - 1; i >= 0; i-- {
		errs = append(errs, c.undo[i](ctx))
	}
	c.undo = nil
	return errors.Join(errs...)
}

// Admin is the configuration of a client that may do everything.
func (c *Cluster) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// Failed yields an error when a part that the cluster cannot do without ended by itself.
func (c *Cluster) Failed() <-chan error { return c.control.failed }

// StopAsked is closed when the administrator wants the cluster to stop; the one who started it then calls Stop.
func (c *Cluster) StopAsked() <-chan struct{} { return c.stopAsked }

func listen(address string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("the API server cannot listen: %w; choose another by --port or --bind-address", err)
	}
	return l, nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
