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
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

const (
	storeReadyTimeout = time.Minute
	// externalReadyTimeout bounds the wait for an etcd cluster that others run.
	externalReadyTimeout = 20 * time.Second
	// DefaultCompactionInterval is how long old revisions are kept, as in kube-apiserver.
	DefaultCompactionInterval = 5 * time.Minute
	// KubeletClientUser is who the API server is to the nodes.
	KubeletClientUser = "kube-apiserver-kubelet-client"
	// AdminUser is the user of the kubeconfig that is written for the person who started the cluster.
	AdminUser = "bayplan-admin"
)

// controlPlane is store and API server, which together are a Kubernetes API.
type controlPlane struct {
	authority *pki.Authority
	pkiDir    string
	server    *apiserver.Server
	state     *store.Store
	address   string
	// stop ends the API server and then the store, and waits for both.
	stop func()
	// failed yields the error by which the API server ended by itself.
	failed chan error
}

// controlPlaneConfig says where a control plane keeps its state and where it can be reached.
type controlPlaneConfig struct {
	store     store.Options
	pkiDir    string
	listeners []net.Listener
	// addresses are those of the serving certificate, beside loopback.
	addresses []net.IP
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	// flags are told to who asks for /flagz.
	flags     map[string]string
	admission apiserver.Admission
}

// startControlPlane returns when the API can be used.
func startControlPlane(ctx context.Context, config controlPlaneConfig, times *timeline) (*controlPlane, error) {
	c := &controlPlane{pkiDir: config.pkiDir, address: config.listeners[0].Addr().String(), failed: make(chan error, 1)}
	opened := make(chan error, 1)
	go func() {
		var err error
		c.state, err = store.Open(ctx, config.store)
		times.mark("etcd")
		opened <- err
	}()
	identities, err := c.identities(config)
	if openErr := <-opened; openErr != nil {
		return nil, openErr
	}
	if err == nil {
		identities.Store, identities.Listeners, identities.Dial = c.state, config.listeners, config.dial
		c.server, err = apiserver.New(*identities)
	}
	if err != nil {
		c.state.Close()
		return nil, err
	}
	return c, c.run(ctx, times)
}

func (c *controlPlane) identities(config controlPlaneConfig) (*apiserver.Config, error) {
	var err error
	if c.authority, err = pki.Open(config.pkiDir, clock.RealClock{}); err != nil {
		return nil, err
	}
	out := &apiserver.Config{
		Authority: c.authority, ServiceCIDR: serviceCIDR, Endpoint: apiEndpoint(), Peers: len(config.store.External.Endpoints) > 0,
		Advertise: advertisedAddress(c.address, config.addresses), Flags: config.flags, Admission: config.admission,
	}
	out.Serving, err = c.authority.Identity("apiserver", pki.Request{
		User:      "kube-apiserver",
		Names:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		Addresses: append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, apiserver.ServiceAddress(serviceCIDR).AsSlice()}, config.addresses...),
	})
	if err != nil {
		return nil, err
	}
	out.NodeClient, err = c.authority.Identity("apiserver-kubelet-client", pki.Request{User: KubeletClientUser, Groups: []string{"kubeadm:cluster-admins"}})
	return out, err
}

func (c *controlPlane) run(ctx context.Context, times *timeline) error {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.failed <- c.server.Run(serving, func() { close(ready) })
	}()
	c.stop = func() {
		cancel()
		<-ended
		c.state.Close()
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

// host is the URL of the API server for a client on this machine.
func (c *controlPlane) host() string { return "https://" + clientAddress(c.address) }

// adminConfig is the configuration of a client over TLS that may do everything.
func (c *controlPlane) adminConfig() (*rest.Config, error) {
	identity, err := c.authority.Identity("admin", pki.Request{User: AdminUser, Groups: []string{user.SystemPrivilegedGroup}})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: c.host(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority.CertPEM(), CertData: identity.CertPEM, KeyData: identity.KeyPEM,
		},
	}, nil
}
