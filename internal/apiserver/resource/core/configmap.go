package core

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// maxDataSize bounds what one ConfigMap or Secret holds, so that etcd's limit on a value is never met.
const maxDataSize = corev1.MaxSecretSize

func configMap() *resource.Kind[*corev1.ConfigMap] {
	return &resource.Kind[*corev1.ConfigMap]{
		Resource:   "configmaps",
		ShortNames: []string{"cm"},
		New:        func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		NewList:    func() runtime.Object { return &corev1.ConfigMapList{} },
		Validate:   validateConfigMap,
		ValidateUpdate: func(obj, old *corev1.ConfigMap) field.ErrorList {
			errs := validateConfigMap(obj)
			if old.Immutable == nil || !*old.Immutable {
				return errs
			}
			if obj.Immutable == nil || !*obj.Immutable {
				errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
			}
			if !maps.Equal(obj.Data, old.Data) {
				errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
			}
			if !equalBytes(obj.BinaryData, old.BinaryData) {
				errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
			}
			return errs
		},
		Columns: []resource.Column[*corev1.ConfigMap]{
			{Name: "Data", Type: "integer", Description: "Number of entries.", Value: func(c *corev1.ConfigMap) any { return int64(len(c.Data) + len(c.BinaryData)) }},
			resource.Age[*corev1.ConfigMap](),
		},
	}
}

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range c.Data {
		path := field.NewPath("data").Key(key)
		errs = append(errs, validateKey(key, path)...)
		if _, ok := c.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range c.BinaryData {
		errs = append(errs, validateKey(key, field.NewPath("binaryData").Key(key))...)
		size += len(value)
	}
	if size > maxDataSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxDataSize))
	}
	return errs
}

func validateKey(key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range utilvalidation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path, key, message))
	}
	return errs
}

func equalBytes(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}
