package apiserver

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

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
	c.BuildHandlerChainFunc = handlerChain(scheme.codecs)
	c.ShutdownWatchTerminationGracePeriod = watchGrace
	c.RESTOptionsGetter = &storageOptions{scheme: scheme, decorator: config.Store.Decorator()}
	c.Authentication.Authenticator = authentication.New(config.Authority.Pool(), s.tokens, s.accounts, s.bootstrapTokens())
	c.Authentication.APIAudiences = s.accounts.Audiences()
	// The library wants a configuration of OpenAPI to be there for `kubectl version` and the like; descriptions are installed by describe.go.
	c.SkipOpenAPIInstallation = true
	c.AddHealthChecks(healthz.NamedCheck("etcd", func(r *http.Request) error { return config.Store.Healthy(r.Context()) }))
	authorizer, err := authorization.New(s.client, factory)
	if err != nil {
		return nil, err
	}
	c.Authorization.Authorizer, c.RuleResolver = authorizer, authorizer
	if err := c.AddPostStartHook("rbac/bootstrap-roles", s.startRoles(authorizer)); err != nil {
		return nil, err
	}
	if c.AdmissionControl, err = s.admission(c, config, factory); err != nil {
		return nil, err
	}
	if config.Flags != nil {
		c.Flagz = flagz(config.Flags)
	}
	c.SecureServing, err = secureServing(config)
	return c, err
}

// flagz is what /flagz tells.
type flagz map[string]string

// GetFlagz implements flagz.Reader.
func (f flagz) GetFlagz() map[string]string { return f }

// startRoles makes the default roles and bindings; the server is not ready before they count. An error of a hook ends the process, so this one tries again until it succeeds or
// the server ends.
func (s *Server) startRoles(a *authorization.Authorizer) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		_ = wait.PollUntilContextCancel(hook, time.Second, true, func(ctx context.Context) (bool, error) {
			err := a.Start(ctx, s.client, s.roles.Create)
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "The default roles and bindings are not complete; trying again")
			}
			return err == nil, nil
		})
		return nil
	}
}

// bootstrapTokens reads from the watch cache.
func (s *Server) bootstrapTokens() *authentication.BootstrapTokens {
	return &authentication.BootstrapTokens{Clock: clock.RealClock{}, Secret: func(ctx context.Context, name string) (*corev1.Secret, error) {
		return s.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	}}
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
