// Package target tells admission plugins what a request writes to, so that each plugin says in one line which requests concern it.
package target

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Of returns the object of a request to the resource itself, not to one of its sub-resources, and whether there is one.
func Of[T runtime.Object](a admission.Attributes, resource schema.GroupResource) (T, bool) {
	return OfSub[T](a, resource, "")
}

// OfSub returns the object of a request to a sub-resource; "" is the resource itself.
func OfSub[T runtime.Object](a admission.Attributes, resource schema.GroupResource, sub string) (T, bool) {
	if a.GetResource().GroupResource() != resource || a.GetSubresource() != sub {
		var none T
		return none, false
	}
	obj, ok := a.GetObject().(T)
	return obj, ok
}

// Forbidden is the answer to a request that fails with err; no error stays none.
func Forbidden(a admission.Attributes, err error) error {
	if err == nil {
		return nil
	}
	return admission.NewForbidden(a, err)
}
