package apiserver

import (
	"crypto/tls"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/bayplan/bayplan/internal/apiserver/authentication"
	"github.com/bayplan/bayplan/internal/apiserver/authorization"
)

// longRunning requests have no deadline: watches, and connections that are passed on.
var longRunning = genericfilters.BasicLongRunningRequestCheck(
	sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// watchGrace is how long watches have to end when the server stops. Without it they would go on, and hold it up, until their clients end them.
const watchGrace = 2 * time.Second

func (s *Server) genericConfig(config Config, scheme *scheme, loopback *rest.Config, factory informers.SharedInformerFactory) (*genericapiserver.Config, error) {
	c := genericapiserver.NewConfig(scheme.codecs)
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	c.ExternalAddress = s.address
	c.LoopbackClientConfig = loopback
	c.LongRunningFunc = longRunning
	c.ShutdownWatchTerminationGracePeriod = watchGrace
	c.RESTOptionsGetter = &storageOptions{scheme: scheme, decorator: config.Store.Decorator()}
	c.Authentication.Authenticator = authentication.New(config.Authority.Pool(), s.tokens, s.accounts)
	c.Authentication.APIAudiences = s.accounts.Audiences()
	// The library wants a configuration of OpenAPI to be there for `kubectl version` and the like; descriptions are installed by describe.go.
	c.SkipOpenAPIInstallation = true
	c.AddHealthChecks(healthz.NamedCheck("etcd", func(r *http.Request) error { return config.Store.Healthy(r.Context()) }))
	var err error
	if c.Authorization.Authorizer, err = s.authorizer(factory); err != nil {
		return nil, err
	}
	if c.AdmissionControl, err = s.admission(c, factory); err != nil {
		return nil, err
	}
	c.SecureServing, err = secureServing(config)
	return c, err
}

func (s *Server) authorizer(factory informers.SharedInformerFactory) (authorizer.Authorizer, error) {
	return authorization.New(s.client, factory)
}

func secureServing(config Config) (*genericapiserver.SecureServingInfo, error) {
	cert, err := dynamiccertificates.NewStaticCertKeyContent("apiserver", config.Serving.CertPEM, config.Serving.KeyPEM)
	if err != nil {
		return nil, err
	}
	ca, err := dynamiccertificates.NewStaticCAContent("client-ca", config.Authority.CertPEM())
	if err != nil {
		return nil, err
	}
	return &genericapiserver.SecureServingInfo{
		Listener: mergeListeners(config.Listeners), Cert: cert, ClientCA: ca, MinTLSVersion: tls.VersionTLS12,
	}, nil
}

func clientTLS(config Config) (*tls.Config, error) {
	pair, err := config.NodeClient.TLS()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: config.Authority.Pool()}, nil
}
