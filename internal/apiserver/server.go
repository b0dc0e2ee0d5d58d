// Package apiserver is the Kubernetes API: k8s.io/apiserver's generic server with the kinds, defaults, validation, columns and rules of our own.
//
// The kinds are described in resource/<group>, one in a file. New makes a scheme of them, builds the server's configuration (who you are, what you may do, what is admitted),
// and installs a storage for each. The server keeps nothing itself: all state is in the store. Parts of the same process get clients from ClientConfig, which
// call the server's handler without a connection.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/apiserver/authentication"
	"github.com/bayplan/bayplan/internal/apiserver/customresources"
	"github.com/bayplan/bayplan/internal/apiserver/inprocess"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rbac"
	"github.com/bayplan/bayplan/internal/apiserver/resource/tokens"
	"github.com/bayplan/bayplan/internal/apiserver/webhook"
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// Config is what an API server is made of.
type Config struct {
	Store *store.Store
	// Authority signs and verifies client certificates; Serving is the server's own certificate; NodeClient is the certificate that it shows to nodes.
	Authority  *pki.Authority
	Serving    pki.Identity
	NodeClient pki.Identity
	// Listeners are where it serves: loopback of the host, and inside the cluster's network where there is one. The first is the address that clients are told.
	Listeners []net.Listener
	// Advertise is the host:port by which other machines are told to reach it; the first listener's when it is empty.
	Advertise string
	// Dial connects from inside the cluster's network to IP:port.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ServiceCIDR is where services get their addresses from; DefaultServiceCIDR when it is not set.
	ServiceCIDR netip.Prefix
	// Endpoint is where Service kubernetes leads: the server's address inside the cluster's network. Without it there is no such service.
	Endpoint netip.AddrPort
	// Peers: other servers may run on the same store.
	Peers bool
	// Flags are the values of the process's flags, none of them secret, for /flagz; without them there is no such path.
	Flags map[string]string
	// Admission says which admission plugins are on, where that is not as usual.
	Admission Admission
}

// Server is the API server of one cluster.
type Server struct {
	generic   *genericapiserver.GenericAPIServer
	address   string
	advertise string
	authority *pki.Authority
	tokens    *authentication.ProcessTokens
	accounts  *tokens.Tokens
	roles     *rbac.Kinds
	client    kubernetes.Interface
	custom    *customresources.Server
	// serviceCIDR and endpoint are as in Config.
	serviceCIDR netip.Prefix
	endpoint    netip.AddrPort
}

// New puts the server together; it serves when Run is called.
func New(config Config) (*Server, error) {
	if len(config.Listeners) == 0 {
		return nil, errors.New("the API server needs at least one listener")
	}
	s := &Server{
		address:   config.Listeners[0].Addr().String(),
		advertise: config.Advertise,
		authority: config.Authority,
		tokens:    &authentication.ProcessTokens{},
		endpoint:  config.Endpoint, serviceCIDR: config.ServiceCIDR,
	}
	if !s.serviceCIDR.IsValid() {
		s.serviceCIDR = DefaultServiceCIDR
	}
	if s.advertise == "" {
		s.advertise = s.address
	}
	var err error
	if s.accounts, err = serviceAccountTokens(config); err != nil {
		return nil, err
	}
	loopback := s.ClientConfig(&user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}})
	if s.client, err = kubernetes.NewForConfig(loopback); err != nil {
		return nil, err
	}
	nodes, err := s.nodes(config)
	if err != nil {
		return nil, err
	}
	groups := groups(s.needs(nodes))
	scheme, err := newScheme(groups)
	if err != nil {
		return nil, err
	}
	return s, s.build(config, scheme, groups, loopback)
}

func (s *Server) build(config Config, scheme *scheme, groups []resource.Group, loopback *rest.Config) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	generic, err := s.genericConfig(config, scheme, loopback, factory)
	if err != nil {
		return err
	}
	generic.AggregatedDiscoveryGroupManager = discoveryendpoint.NewResourceManager("apis")
	completed := generic.Complete(factory)
	if s.custom, err = customresources.New(s.customResources(config, completed.Config)); err != nil {
		return err
	}
	if s.generic, err = completed.New("kube-apiserver", s.custom.Target()); err != nil {
		return err
	}
	described := newDescription(scheme, *completed.EffectiveVersion.Info())
	i := &installer{
		server: s.generic, config: completed.Config, scheme: scheme, converter: described.typeConverter(),
		options: completed.RESTOptionsGetter.(*storageOptions),
	}
	if err := i.install(groups); err != nil {
		return err
	}
	services := slices.Concat(s.generic.Handler.GoRestfulContainer.RegisteredWebServices(), s.custom.WebServices())
	places, err := described.install(s.generic.Handler.NonGoRestfulMux, services)
	if err != nil {
		return err
	}
	places.Groups = s.generic.DiscoveryGroupManager
	s.custom.Publish(places)
	return nil
}

func (s *Server) customResources(config Config, generic *genericapiserver.Config) customresources.Config {
	return customresources.Config{
		Generic: generic, Decorator: config.Store.ReadyDecorator(), Prefix: store.Prefix, DeleteWorkers: deleteWorkers,
		Services: webhook.Services{Client: s.client, Dial: config.Dial}, Peers: config.Peers,
	}
}

// ServeHTTP passes a request to the server's whole chain of handlers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.generic.Handler.ServeHTTP(w, r) }

// Handle answers a path without resources, behind the chain of handlers that authenticates and authorizes, until the function
// returned is called.
func (s *Server) Handle(path string, handler http.Handler) (end func()) {
	mux := s.generic.Handler.NonGoRestfulMux
	mux.Handle(path, handler)
	return func() { mux.Unregister(path) }
}

// ClientConfig returns the configuration of a client in this process that acts as u.
func (s *Server) ClientConfig(u user.Info) *rest.Config {
	return &rest.Config{
		Host:        "https://" + s.address,
		BearerToken: s.tokens.Issue(u),
		Transport:   inprocess.Transport{Handler: s},
		// Without a limit: queues keep the parts fair to each other, and the server protects itself.
		QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// Run serves until ctx is done, then lets requests end. ready is called once, when the API can be used.
func (s *Server) Run(ctx context.Context, ready func()) error {
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	defer s.custom.Stop()
	defer stop()
	s.custom.Sync(serving)
	go func() { ended <- s.generic.PrepareRun().RunWithContext(serving) }()
	if err := s.awaitReady(ctx, ended); err != nil {
		return err
	}
	if err := s.ensureSystem(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("making the objects of every cluster: %w", err)
	}
	ready()
	return <-ended
}
