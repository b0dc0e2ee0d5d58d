package customresources

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	library "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// stored reads and writes definitions in the store: those of v1beta1 too, which nobody is served any more, but which an old store may have.
var stored = library.Codecs

// Scheme has the types of definitions that are served.
var Scheme = servedScheme()

// The library serves what its own scheme has, and warns at each start of a version that it has no resources for (v1beta1). It offers no other way to give it a
// scheme; nothing has read it yet when packages are initialised.
func init() {
	library.Scheme, library.Codecs = Scheme, serializer.NewCodecFactory(Scheme)
}

func servedScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(apiextensions.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(s.SetVersionPriority(apiextensionsv1.SchemeGroupVersion))
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, unversioned)
	s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.WatchEvent{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}
