// Package testcluster gives a Go test a whole Kubernetes cluster in its own process:
//
//	cluster := testcluster.Start(t)
//	client, err := kubernetes.NewForConfig(cluster.Config())
//
// Each call starts a cluster of its own, on a free port of the loopback address, with its state in the test's temporary directory: API, controllers (namespaces
// go away, garbage is collected) and scheduler. Many can run side by side. It is stopped when the test ends.
package testcluster

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/kubeconfig"
)

// Cluster is a cluster that lives as long as its test.
type Cluster struct {
	t       testing.TB
	config  cluster.Config
	cluster *cluster.Cluster
	once    sync.Once
	path    string
}

// Start starts a cluster; the test fails if that does not work.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t, config: cluster.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1"}}
	c.start()
	t.Cleanup(c.stop)
	return c
}

// Restart stops the cluster and starts it again, at the same address and with all that is stored. Connections end, as when a control plane is upgraded.
func (c *Cluster) Restart() {
	c.t.Helper()
	address, err := netip.ParseAddrPort(strings.TrimPrefix(c.Config().Host, "https://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.config.Port = int(address.Port())
	c.stop()
	c.start()
}

func (c *Cluster) start() {
	c.t.Helper()
	started, err := cluster.Start(c.t.Context(), c.config)
	if err != nil {
		c.t.Fatalf("starting a cluster: %v", err)
	}
	c.cluster = started
}

func (c *Cluster) stop() {
	c.t.Helper()
	if err := c.cluster.Stop(context.Background()); err != nil {
		c.t.Errorf("stopping the cluster: %v", err)
	}
}

// Config is the configuration of a client over TLS that may do everything.
func (c *Cluster) Config() *rest.Config { return c.cluster.Admin() }

// Kubeconfig is a file, in a temporary directory of the test, by which kubectl and the like reach the cluster. Its user may do everything.
func (c *Cluster) Kubeconfig() string {
	c.t.Helper()
	c.once.Do(func() {
		path := filepath.Join(c.t.TempDir(), "kubeconfig")
		if err := kubeconfig.At(path).Add("testcluster", c.Config()); err != nil {
			c.t.Fatalf("writing a kubeconfig: %v", err)
		}
		c.path = path
	})
	return c.path
}
