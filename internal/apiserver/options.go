package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/bayplan/bayplan/internal/store"
)

// deleteWorkers is how many objects one deletecollection deletes at a time.
const deleteWorkers = 4

// storageOptions says to the registries where and how objects are kept: in protobuf, in the version that the group prefers.
type storageOptions struct {
	scheme    *scheme
	decorator generic.StorageDecorator
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o *storageOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	version := o.scheme.PrioritizedVersionsForGroup(resource.Group)[0]
	info, _ := runtime.SerializerInfoForMediaType(o.scheme.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	codec := o.scheme.codecs.CodecForVersions(info.Serializer, o.scheme.codecs.UniversalDeserializer(), version, runtime.InternalGroupVersioner)
	config := storagebackend.NewDefaultConfig(store.Prefix, codec)
	config.EncodeVersioner = version
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               o.decorator,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: deleteWorkers,
		ResourcePrefix:          resourcePrefix(resource),
	}, nil
}

// resourcePrefix is where the objects of a resource begin in the store; some keep names from Kubernetes' early days.
func resourcePrefix(resource schema.GroupResource) string {
	switch resource {
	case schema.GroupResource{Resource: "nodes"}:
		return "minions"
	case schema.GroupResource{Resource: "services"}:
		return "services/specs"
	case schema.GroupResource{Resource: "endpoints"}:
		return "services/endpoints"
	}
	return resource.Resource
}
