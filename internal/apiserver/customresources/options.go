package customresources

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// options says to the registries where and how objects are kept.
type options struct {
	Config
	codec runtime.Codec
	// version is that of what is stored, where it is the same for all.
	version runtime.GroupVersioner
}

// definitionOptions store definitions as JSON, as kube-apiserver does: most of one is a schema.
func definitionOptions(config Config) *options {
	version := apiextensionsv1.SchemeGroupVersion
	return &options{Config: config, codec: stored.LegacyCodec(version), version: version}
}

// resourceOptions are those of all custom resources: the library wraps the codec for each version of each. It must be able to decode an object whose kind it
// does not know, or definitions cannot be deleted.
func resourceOptions(config Config) *options {
	return &options{Config: config, codec: runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o *options) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig(o.Prefix, o.codec)
	config.EncodeVersioner = o.version
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               o.Decorator,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: o.DeleteWorkers,
		// A group of custom resources has a dot in its name, so that no key is one of a built-in kind.
		ResourcePrefix: resource.Group + "/" + resource.Resource,
	}, nil
}
