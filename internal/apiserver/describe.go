package apiserver

import (
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/bayplan/bayplan/internal/apiserver/customresources"
	"github.com/bayplan/bayplan/internal/apiserver/openapi"
)

// description is what the server says about its own API. All of it is made when somebody first asks: nobody does at start.
type description struct {
	namer  *openapinamer.DefinitionNamer
	config func() *common.OpenAPIV3Config
}

func newDescription(scheme *scheme, info version.Info) *description {
	d := &description{namer: openapinamer.NewDefinitionNamer(scheme.described, customresources.Scheme)}
	d.config = sync.OnceValue(func() *common.OpenAPIV3Config {
		config := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, d.namer)
		config.Info.Title, config.Info.Version = "Kubernetes", info.GitVersion
		return config
	})
	return d
}

// install serves /openapi/v2, and /openapi/v3 for each of the services: there is one for a group version.
func (d *description) install(mux *mux.PathRecorderMux, services []*restful.WebService) (customresources.Places, error) {
	builtin := d.builtin(services)
	places := customresources.Places{V3: handler3.NewOpenAPIService(), V2: handler.NewOpenAPIServiceLazy(builtin), Builtin: builtin, Taken: map[string]bool{}}
	places.V2.RegisterOpenAPIVersionedService("/openapi/v2", mux)
	for _, ws := range services {
		path := strings.TrimPrefix(ws.RootPath(), "/")
		places.Taken[path] = true
		places.V3.UpdateGroupVersionLazy(path, cached.Once(cached.Func(func() (*spec3.OpenAPI, string, error) {
			described, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{ws}), d.config())
			return described, path, err
		})))
	}
	return places, places.V3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux)
}

// builtin is the older description, of all groups in one, which older clients validate with.
func (d *description) builtin(services []*restful.WebService) cached.Value[*spec.Swagger] {
	return cached.Once(cached.Func(func() (*spec.Swagger, string, error) {
		config := genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, d.namer)
		config.Info = d.config().Info
		described, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), config)
		if err != nil {
			return nil, "", err
		}
		described.Definitions = handler.PruneDefaults(described.Definitions)
		return described, "v2", nil
	}))
}

// typeConverter gives server-side apply the structure of each kind.
func (d *description) typeConverter() managedfields.TypeConverter {
	return &lazyConverter{make: sync.OnceValues(func() (managedfields.TypeConverter, error) {
		models := map[string]*spec.Schema{}
		definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
			defined, _ := d.namer.GetDefinitionName(name)
			return spec.MustCreateRef("#/definitions/" + common.EscapeJsonPointer(defined))
		})
		for name, definition := range definitions {
			defined, extensions := d.namer.GetDefinitionName(name)
			model := definition.Schema
			for key, value := range extensions {
				model.AddExtension(key, value)
			}
			models[defined] = &model
		}
		return managedfields.NewTypeConverter(models, false)
	})}
}

type lazyConverter struct {
	make func() (managedfields.TypeConverter, error)
}

// ObjectToTyped implements managedfields.TypeConverter.
func (l *lazyConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	converter, err := l.make()
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(obj, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (l *lazyConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	converter, err := l.make()
	if err != nil {
		return nil, err
	}
	return converter.TypedToObject(value)
}
