// Package cluster puts the parts of a cluster together, each of which can also run alone: it starts them in order, waits until each is ready, and stops them in
// the reverse order.
//
//	data directory ─► store ─► API server ─► controllers, scheduler ─► nodes ─► ready
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/node/network"
)

// Config says what a cluster consists of.
type Config struct {
	DataDir     string
	BindAddress string
	// Port 0 takes a free one.
	Port int
	// Nodes is how many nodes run containers; they need Linux and root.
	Nodes int
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
	times   *timeline
	// undo stops what was started, the last first.
	undo []func(context.Context) error
}

// Start starts a cluster and returns when it can be used. An error leaves nothing running.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	c := &Cluster{config: config, times: &timeline{begun: time.Now(), report: config.Report}}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.data, err = datadir.Open(c.config.DataDir); err != nil {
		return err
	}
	c.onStop(func(context.Context) error { return c.data.Close() })
	listener, err := listen(c.config.BindAddress, c.config.Port)
	if err != nil {
		return err
	}
	plane := controlPlaneConfig{data: c.data, listeners: []net.Listener{listener}, dial: (&net.Dialer{}).DialContext}
	if c.config.Nodes > 0 {
		if err := c.openNetwork(ctx, &plane); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	if c.control, err = startControlPlane(ctx, plane, c.times); err != nil {
		return errors.Join(err, listener.Close())
	}
	c.onStop(func(context.Context) error { c.control.stop(); return nil })
	if c.admin, err = c.control.adminConfig(); err != nil {
		return err
	}
	if err := c.startParts(ctx); err != nil || c.config.Nodes == 0 {
		return err
	}
	return c.startNodes(ctx)
}

func (c *Cluster) onStop(f func(context.Context) error) { c.undo = append(c.undo, f) }

// Stop stops the cluster in order. ctx bounds how long pods are waited for.
func (c *Cluster) Stop(ctx context.Context) error {
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

func listen(address string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("the API server cannot listen: %w; choose another by --port or --bind-address", err)
	}
	return l, nil
}
