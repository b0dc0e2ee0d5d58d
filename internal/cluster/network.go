package cluster

import (
	"context"
	"net"
	"path/filepath"

	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/node/network"
)

// openNetwork makes the cluster's network namespaces, or finds those that a killed process left, and lets the API server listen and dial inside.
func (c *Cluster) openNetwork(ctx context.Context, plane *controlPlaneConfig) error {
	fabric, err := openFabric(ctx, c.data)
	if err != nil {
		return err
	}
	c.fabric = fabric
	// A cluster that is stopped in order takes its namespaces away.
	c.onStop(func(ctx context.Context) error { return fabric.Remove(ctx) })
	listener, err := fabric.ControlPlane().Listen(ctx, "tcp", apiEndpoint().String())
	if err != nil {
		return err
	}
	plane.listeners = append(plane.listeners, listener)
	plane.addresses = append(plane.addresses, net.IP(fabric.Address().AsSlice()))
	plane.dial = fabric.ControlPlane().Dial
	c.times.mark("network")
	return nil
}

func openFabric(ctx context.Context, data *datadir.Dir) (*network.Fabric, error) {
	id := clusterID(data.Path())
	return network.Open(ctx, network.Config{
		Cluster: id, RunDir: filepath.Join(runRoot, id), StateDir: data.Path("network"),
		NodeCIDR: nodeCIDR, PodCIDR: podCIDR, ServiceCIDR: serviceCIDR,
	})
}
