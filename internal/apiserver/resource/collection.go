package resource

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// OnlyForCollection reports whether nothing changes but what the garbage collector writes: owners and finalizers. What asks for a privilege to write an object asks for none here,
// or objects could not go away.
func OnlyForCollection(obj, old runtime.Object) bool {
	changed := obj.DeepCopyObject()
	a, err := meta.Accessor(changed)
	if err != nil {
		return false
	}
	b, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	a.SetOwnerReferences(b.GetOwnerReferences())
	a.SetFinalizers(b.GetFinalizers())
	a.SetManagedFields(b.GetManagedFields())
	return equality.Semantic.DeepEqual(changed, old)
}
