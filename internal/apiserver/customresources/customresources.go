// Package customresources serves CustomResourceDefinitions and the resources that they define.
//
// The library's server for them (apiextensions-apiserver) stands behind the main server: a request passes the main server's chain of handlers (who you are, what you may do), and
// one that no built-in kind answers is passed on to it, with the same admission. What is around it is here:
//
//	definition ──informer──► published ──► /apis              (the list of groups, for clients that do not know the aggregated form)
//	                    │             └──► /openapi/v3, v2    (made when somebody asks)
//	                    └──► library ────► aggregated discovery, conditions, deletion, storage for each version
//
// A definition costs what it is until its resource is used: storage and watch cache are made by the first request for it, descriptions by the first question for them.
package customresources

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/apiserver/webhook"
)

// Config is what custom resources need of the server that they belong to.
type Config struct {
	// Generic is the configuration of the main server, with its admission, authorizer, loopback client and discovery. It is not changed.
	Generic *genericapiserver.Config
	// Decorator makes the storage of a resource; Prefix is where all keys begin; DeleteWorkers is how many objects one deletecollection deletes at a time.
	Decorator     generic.StorageDecorator
	Prefix        string
	DeleteWorkers int
	// Services reaches the services of conversion webhooks.
	Services webhook.Services
	// Peers: other servers may run on the same store. A definition is then established after a while only, when all of them know it.
	Peers bool
}

// Server answers for definitions and custom resources.
type Server struct {
	library   *apiextensions.CustomResourceDefinitions
	published *published
	synced    []cache.DoneChecker
}

// New makes the server. The main server delegates to Target.
func New(config Config) (*Server, error) {
	own := apiextensions.Config{
		GenericConfig: genericConfig(config),
		ExtraConfig: apiextensions.ExtraConfig{
			CRDRESTOptionsGetter: resourceOptions(config),
			MasterCount:          servers(config.Peers),
			ServiceResolver:      config.Services,
			AuthResolverWrapper:  config.Services.Route,
		},
	}
	library, err := own.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	definitions := library.Informers.Apiextensions().V1().CustomResourceDefinitions()
	s := &Server{library: library, published: newPublished(definitions.Lister())}
	registration, err := definitions.Informer().AddEventHandler(s.published.handler())
	if err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	s.synced = []cache.DoneChecker{definitions.Informer().HasSyncedChecker(), registration.HasSyncedChecker()}
	setPriority(config.Generic.AggregatedDiscoveryGroupManager)
	return s, nil
}

// servers is how many the library is told of; it asks whether there are more than one.
func servers(peers bool) int {
	if peers {
		return 2
	}
	return 1
}

// genericConfig is the main server's, but for what only the outermost server does.
func genericConfig(config Config) *genericapiserver.RecommendedConfig {
	c := *config.Generic
	c.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	c.RESTOptionsGetter = definitionOptions(config)
	c.MergedResourceConfig = apiextensions.DefaultAPIResourceConfigSource()
	c.SkipOpenAPIInstallation = true
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, openapinamer.NewDefinitionNamer(Scheme))
	// Requests come through the main server's chain.
	c.BuildHandlerChainFunc = func(handler http.Handler, _ *genericapiserver.Config) http.Handler { return handler }
	return &genericapiserver.RecommendedConfig{Config: c}
}

// Target is what the main server passes requests to that it does not answer itself.
func (s *Server) Target() *genericapiserver.GenericAPIServer { return s.library.GenericAPIServer }

// WebServices are those of the definitions' own group.
func (s *Server) WebServices() []*restful.WebService {
	all := s.library.GenericAPIServer.Handler.GoRestfulContainer.RegisteredWebServices()
	return slices.DeleteFunc(slices.Clone(all), func(ws *restful.WebService) bool {
		return !strings.HasPrefix(ws.RootPath(), genericapiserver.APIGroupPrefix+"/"+apiextensionsv1.GroupName)
	})
}

// Sync reads the definitions, until ctx is done, and returns when they are known. It is called when the main server can answer and before its hooks run: the
// library's hooks look every 100 ms only whether the definitions are there, so they had better be there at the first look.
func (s *Server) Sync(ctx context.Context) {
	s.library.Informers.Start(ctx.Done())
	cache.WaitFor(ctx, "", s.synced...)
}

// Stop waits for what Sync started; its context must be done.
func (s *Server) Stop() { s.library.Informers.Shutdown() }
