package apiserver

import (
	"fmt"

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
func (o *storageOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	version, err := o.version(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
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

// version is the first of the group's versions, in order of preference, that has the kind.
func (o *storageOptions) version(resource schema.GroupResource, example runtime.Object) (schema.GroupVersion, error) {
	gvks, _, err := o.scheme.ObjectKinds(example)
	if err != nil {
		return schema.GroupVersion{}, err
	}
	for _, version := range o.scheme.PrioritizedVersionsForGroup(resource.Group) {
		if o.scheme.Recognizes(version.WithKind(gvks[0].Kind)) {
			return version, nil
		}
	}
	return schema.GroupVersion{}, fmt.Errorf("no version of %s has %s", resource, gvks[0].Kind)
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
