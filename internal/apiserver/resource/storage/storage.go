// Package storage describes the kinds of the group storage.k8s.io, one in a file.
package storage

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: storagev1.SchemeGroupVersion,
		AddToScheme:  storagev1.AddToScheme,
		Kinds: []resource.Description{
			csiDriver(), csiNode(), csiStorageCapacity(), storageClass(), volumeAttachment(), volumeAttributesClass(),
		},
	}
}

var spec = field.NewPath("spec")

// maxDriverName bounds the names of CSI drivers, which stand in the names of other things.
const maxDriverName = 63

// validateDriverName wants the name of a CSI driver.
func validateDriverName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(name) > maxDriverName {
		return field.ErrorList{field.TooLong(path, name, maxDriverName)}
	}
	return rules.Invalid(utilvalidation.IsDNS1123Subdomain(strings.ToLower(name)), path, name)
}

// nameWithDefault marks the object that is used where none is named.
func nameWithDefault[T resource.Object](annotation string) func(T) string {
	return func(obj T) string {
		if obj.GetAnnotations()[annotation] == "true" {
			return obj.GetName() + " (default)"
		}
		return obj.GetName()
	}
}

func boolean(b *bool) bool { return b != nil && *b }
