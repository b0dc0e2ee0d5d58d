package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// handlerChain is what stands before the resources: the library's filters, and withNames.
func handlerChain(codecs runtime.NegotiatedSerializer) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(resources http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(withNames(resources, codecs), c)
	}
}

// withNames refuses requests in whose path the name of a namespace cannot be one ("..", or with an escaped slash), before plugins ask the API for such a namespace and take the answer for a
// fault of the server.
func withNames(handler http.Handler, codecs runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.Namespace != "" {
			if problems := path.IsValidPathSegmentName(info.Namespace); len(problems) > 0 {
				err := apierrors.NewBadRequest(fmt.Sprintf("the path names the namespace %q, which cannot be the name of one: %s", info.Namespace, problems[0]))
				responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
}
