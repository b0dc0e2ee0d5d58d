package apiserver

import (
	"fmt"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// installer puts groups into a generic server. It does what the library's InstallAPIGroups does, without building the description of the API, which costs more
// than all the rest.
type installer struct {
	server    *genericapiserver.GenericAPIServer
	config    *genericapiserver.Config
	scheme    *scheme
	options   *storageOptions
	converter managedfields.TypeConverter
}

func (i *installer) install(groups []resource.Group) error {
	for _, group := range groups {
		if err := i.installGroup(group); err != nil {
			return fmt.Errorf("installing %s: %w", group.GroupVersion, err)
		}
	}
	i.addGroups(groups)
	return nil
}

func (i *installer) installGroup(group resource.Group) error {
	storage, err := i.storage(group)
	if err != nil {
		return err
	}
	resources, _, err := i.groupVersion(group.GroupVersion, storage).InstallREST(i.server.Handler.GoRestfulContainer)
	if err != nil {
		return err
	}
	described := apidiscoveryv2.APIVersionDiscovery{Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: group.Version, Resources: resources}
	if group.Group == "" {
		i.addLegacyDiscovery(described)
		return nil
	}
	i.server.AggregatedDiscoveryGroupManager.AddGroupVersion(group.Group, described)
	return nil
}

func (i *installer) storage(group resource.Group) (map[string]rest.Storage, error) {
	all := map[string]rest.Storage{}
	env := resource.Environment{Scheme: i.scheme.Scheme, Version: group.GroupVersion, Options: i.options}
	for _, kind := range group.Kinds {
		storage, err := kind.Install(env)
		if err != nil {
			return nil, err
		}
		for path, s := range storage {
			all[path] = s
		}
		if ready, ok := storage[kind.Name()].(rest.StorageWithReadiness); ok {
			gvr := metav1.GroupVersionResource{Group: group.Group, Version: group.Version, Resource: kind.Name()}
			i.server.StorageReadinessHook.RegisterStorage(gvr, ready)
		}
		i.server.RegisterDestroyFunc(storage[kind.Name()].Destroy)
	}
	return all, nil
}

func (i *installer) groupVersion(version schema.GroupVersion, storage map[string]rest.Storage) *genericapi.APIGroupVersion {
	root := genericapiserver.APIGroupPrefix
	if version.Group == "" {
		root = genericapiserver.DefaultLegacyAPIPrefix
	}
	served := map[string][]string{}
	for path := range storage {
		served[path] = []string{version.String()}
	}
	core := schema.GroupVersion{Version: "v1"}
	return &genericapi.APIGroupVersion{
		Root:                        root,
		GroupVersion:                version,
		Storage:                     storage,
		AllServedVersionsByResource: served,
		OptionsExternalVersion:      &core,
		ParameterCodec:              i.scheme.parameters,
		Serializer:                  i.scheme.codecs,
		Creater:                     i.scheme,
		Convertor:                   i.scheme,
		ConvertabilityChecker:       i.scheme,
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(i.scheme.Scheme),
		Defaulter:                   i.scheme,
		Typer:                       i.scheme,
		Namer:                       runtime.Namer(meta.NewAccessor()),
		TypeConverter:               i.converter,
		EquivalentResourceRegistry:  i.config.EquivalentResourceRegistry,
		Authorizer:                  i.config.Authorization.Authorizer,
		Admit:                       i.config.AdmissionControl,
		MaxRequestBodyBytes:         i.config.MaxRequestBodyBytes,
		MinRequestTimeout:           time.Duration(i.config.MinRequestTimeout) * time.Second,
	}
}

func (i *installer) addLegacyDiscovery(version apidiscoveryv2.APIVersionDiscovery) {
	manager := i.server.AggregatedLegacyDiscoveryGroupManager
	manager.AddGroupVersion("", version)
	handler := discovery.NewLegacyRootAPIHandler(i.config.DiscoveryAddresses, i.scheme.codecs, genericapiserver.DefaultLegacyAPIPrefix)
	wrapped := discoveryendpoint.WrapAggregatedDiscoveryToHandler(handler, manager, manager)
	i.server.Handler.GoRestfulContainer.Add(wrapped.GenerateWebService(genericapiserver.DefaultLegacyAPIPrefix, metav1.APIVersions{}))
}

// addGroups serves /apis/GROUP, which lists a group's versions, the preferred one first.
func (i *installer) addGroups(groups []resource.Group) {
	var names []string
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for _, group := range groups {
		if group.Group == "" {
			continue
		}
		if versions[group.Group] == nil {
			names = append(names, group.Group)
		}
		versions[group.Group] = append(versions[group.Group], metav1.GroupVersionForDiscovery{GroupVersion: group.GroupVersion.String(), Version: group.Version})
	}
	for n, name := range names {
		group := metav1.APIGroup{Name: name, Versions: versions[name], PreferredVersion: versions[name][0]}
		i.server.DiscoveryGroupManager.AddGroup(group)
		i.server.Handler.GoRestfulContainer.Add(discovery.NewAPIGroupHandler(i.scheme.codecs, group).WebService())
		for v, version := range group.Versions {
			gv := metav1.GroupVersion{Group: name, Version: version.Version}
			i.server.AggregatedDiscoveryGroupManager.SetGroupVersionPriority(gv, groupPriority-n, len(group.Versions)-v)
		}
	}
}

// groupPriority is that of the first group in discovery; each following one has one less. It is above what custom resources have.
const groupPriority = 17900
