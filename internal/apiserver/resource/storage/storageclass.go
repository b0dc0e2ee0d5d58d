package storage

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

const (
	defaultClassAnnotation      = "storageclass.kubernetes.io/is-default-class"
	defaultAttributesAnnotation = "volumeattributesclass.kubernetes.io/is-default-class"
	maxParameters               = 512
	maxParameterBytes           = 256 << 10
)

func storageClass() *resource.Kind[*storagev1.StorageClass] {
	return &resource.Kind[*storagev1.StorageClass]{
		Resource:            "storageclasses",
		ShortNames:          []string{"sc"},
		ClusterWide:         true,
		AllowCreateOnUpdate: true,
		New:                 func() *storagev1.StorageClass { return &storagev1.StorageClass{} },
		NewList:             func() runtime.Object { return &storagev1.StorageClassList{} },
		Default: func(c *storagev1.StorageClass) {
			if c.ReclaimPolicy == nil {
				c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimDelete)
			}
			if c.VolumeBindingMode == nil {
				c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate)
			}
		},
		Validate: validateClass,
		ValidateUpdate: func(c, old *storagev1.StorageClass) field.ErrorList {
			errs := validateClass(c)
			if !maps.Equal(c.Parameters, old.Parameters) {
				errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			if c.Provisioner != old.Provisioner {
				errs = append(errs, field.Forbidden(field.NewPath("provisioner"), "updates to provisioner are forbidden."))
			}
			if *c.ReclaimPolicy != *old.ReclaimPolicy {
				errs = append(errs, field.Forbidden(field.NewPath("reclaimPolicy"), "updates to reclaimPolicy are forbidden."))
			}
			return append(errs, rules.Unchanged(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
		},
		NameText: nameWithDefault[*storagev1.StorageClass](defaultClassAnnotation),
		Columns: []resource.Column[*storagev1.StorageClass]{
			{Name: "Provisioner", Description: "Who makes volumes.", Value: func(c *storagev1.StorageClass) any { return c.Provisioner }},
			{Name: "ReclaimPolicy", Description: "What becomes of a volume when its claim goes.", Value: func(c *storagev1.StorageClass) any {
				return string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))
			}},
			{Name: "VolumeBindingMode", Description: "When volumes are bound.", Value: func(c *storagev1.StorageClass) any {
				return string(ptr.Deref(c.VolumeBindingMode, storagev1.VolumeBindingImmediate))
			}},
			{Name: "AllowVolumeExpansion", Description: "Whether volumes can grow.", Value: func(c *storagev1.StorageClass) any { return boolean(c.AllowVolumeExpansion) }},
			resource.Age[*storagev1.StorageClass](),
		},
	}
}

func validateClass(c *storagev1.StorageClass) field.ErrorList {
	errs := rules.Qualified(c.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, validateParameters(c.Parameters, true, field.NewPath("parameters"))...)
	errs = append(errs, rules.OneOfPointer(c.ReclaimPolicy, field.NewPath("reclaimPolicy"), corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	return append(errs, rules.OneOf(ptr.Deref(c.VolumeBindingMode, ""), field.NewPath("volumeBindingMode"),
		storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
}

func validateParameters(parameters map[string]string, empty bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(parameters) == 0 && !empty {
		return field.ErrorList{field.Required(path, "must contain at least one key/value pair")}
	}
	if len(parameters) > maxParameters {
		return field.ErrorList{field.TooLong(path, "", maxParameters)}
	}
	size := 0
	for key, value := range parameters {
		if key == "" {
			errs = append(errs, field.Invalid(path, key, "field can not be empty."))
		}
		size += len(key) + len(value)
	}
	if size > maxParameterBytes {
		errs = append(errs, field.TooLong(path, "", maxParameterBytes))
	}
	return errs
}

func volumeAttributesClass() *resource.Kind[*storagev1.VolumeAttributesClass] {
	validate := func(c *storagev1.VolumeAttributesClass) field.ErrorList {
		return append(validateDriverName(c.DriverName, field.NewPath("driverName")), validateParameters(c.Parameters, false, field.NewPath("parameters"))...)
	}
	return &resource.Kind[*storagev1.VolumeAttributesClass]{
		Resource:            "volumeattributesclasses",
		ShortNames:          []string{"vac"},
		ClusterWide:         true,
		AllowCreateOnUpdate: true,
		New:                 func() *storagev1.VolumeAttributesClass { return &storagev1.VolumeAttributesClass{} },
		NewList:             func() runtime.Object { return &storagev1.VolumeAttributesClassList{} },
		Validate:            validate,
		ValidateUpdate: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			errs := validate(c)
			if c.DriverName != old.DriverName {
				errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
			}
			if !maps.Equal(c.Parameters, old.Parameters) {
				errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			return errs
		},
		NameText: nameWithDefault[*storagev1.VolumeAttributesClass](defaultAttributesAnnotation),
		Columns: []resource.Column[*storagev1.VolumeAttributesClass]{
			{Name: "DriverName", Description: "The CSI driver.", Value: func(c *storagev1.VolumeAttributesClass) any { return c.DriverName }},
			resource.Age[*storagev1.VolumeAttributesClass](),
		},
	}
}
