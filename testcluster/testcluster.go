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
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/kubeconfig"
)

// Cluster is a cluster that lives as long as its test.
type Cluster struct {
	t       testing.TB
	cluster *cluster.Cluster
	once    sync.Once
	path    string
}

// Start starts a cluster; the test fails if that does not work.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1"})
	if err != nil {
		t.Fatalf("starting a cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	return &Cluster{t: t, cluster: c}
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
