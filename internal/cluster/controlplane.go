package cluster

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver"
	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

const (
	storeReadyTimeout = time.Minute
	// compactionInterval is how long old revisions are kept, as in kube-apiserver.
	compactionInterval = 5 * time.Minute
	// KubeletClientUser is who the API server is to the nodes.
	KubeletClientUser = "kube-apiserver-kubelet-client"
	// AdminUser is the user of the kubeconfig that is written for the person who started the cluster.
	AdminUser = "bayplan-admin"
)

// controlPlane is store and API server, which together are a Kubernetes API.
type controlPlane struct {
	authority *pki.Authority
	server    *apiserver.Server
	address   string
	// stop ends the API server and then the store, and waits for both.
	stop func()
	// failed yields the error by which the API server ended by itself.
	failed chan error
}

// controlPlaneConfig says where a control plane keeps its state and where it can be reached.
type controlPlaneConfig struct {
	data      *datadir.Dir
	listeners []net.Listener
	// addresses are those of the serving certificate, beside loopback.
	addresses []net.IP
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

// startControlPlane returns when the API can be used.
func startControlPlane(ctx context.Context, config controlPlaneConfig, times *timeline) (*controlPlane, error) {
	opened := make(chan error, 1)
	var state *store.Store
	go func() {
		var err error
		state, err = store.Open(ctx, store.Options{Dir: config.data.Path("etcd"), CompactionInterval: compactionInterval, ReadyTimeout: storeReadyTimeout})
		times.mark("etcd")
		opened <- err
	}()
	c := &controlPlane{address: config.listeners[0].Addr().String(), failed: make(chan error, 1)}
	identities, err := c.identities(config)
	if openErr := <-opened; openErr != nil {
		return nil, openErr
	}
	if err != nil {
		state.Close()
		return nil, err
	}
	identities.Store, identities.Listeners, identities.Dial = state, config.listeners, config.dial
	if c.server, err = apiserver.New(*identities); err != nil {
		state.Close()
		return nil, err
	}
	return c, c.run(ctx, state, times)
}

func (c *controlPlane) identities(config controlPlaneConfig) (*apiserver.Config, error) {
	var err error
	if c.authority, err = pki.Open(config.data.Path("pki"), clock.RealClock{}); err != nil {
		return nil, err
	}
	out := &apiserver.Config{Authority: c.authority}
	out.Serving, err = c.authority.Identity("apiserver", pki.Request{
		User:      "kube-apiserver",
		Names:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		Addresses: append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, config.addresses...),
	})
	if err != nil {
		return nil, err
	}
	out.NodeClient, err = c.authority.Identity("apiserver-kubelet-client", pki.Request{User: KubeletClientUser, Groups: []string{"kubeadm:cluster-admins"}})
	return out, err
}

func (c *controlPlane) run(ctx context.Context, state *store.Store, times *timeline) error {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.failed <- c.server.Run(serving, func() { close(ready) })
	}()
	c.stop = func() {
		cancel()
		<-ended
		state.Close()
	}
	select {
	case <-ready:
		times.mark("api server")
		return nil
	case err := <-c.failed:
		c.stop()
		return fmt.Errorf("starting the API server: %w", err)
	case <-ctx.Done():
		c.stop()
		return context.Cause(ctx)
	}
}

// adminConfig is the configuration of a client over TLS that may do everything.
func (c *controlPlane) adminConfig() (*rest.Config, error) {
	identity, err := c.authority.Identity("admin", pki.Request{User: AdminUser, Groups: []string{user.SystemPrivilegedGroup}})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + c.address,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority.CertPEM(), CertData: identity.CertPEM, KeyData: identity.KeyPEM,
		},
	}, nil
}
