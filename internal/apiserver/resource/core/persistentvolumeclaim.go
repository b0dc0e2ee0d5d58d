package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func persistentVolumeClaim() *resource.Kind[*corev1.PersistentVolumeClaim] {
	return &resource.Kind[*corev1.PersistentVolumeClaim]{
		Resource:   "persistentvolumeclaims",
		ShortNames: []string{"pvc"},
		HasStatus:  true,
		New:        func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} },
		NewList:    func() runtime.Object { return &corev1.PersistentVolumeClaimList{} },
		Default: func(c *corev1.PersistentVolumeClaim) {
			if c.Status.Phase == "" {
				c.Status.Phase = corev1.ClaimPending
			}
			podspec.DefaultClaim(&c.Spec)
		},
		PrepareCreate: func(_ context.Context, c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimPending
			agreeDataSources(&c.Spec)
		},
		PrepareUpdate:  func(_ context.Context, c, _ *corev1.PersistentVolumeClaim) { agreeDataSources(&c.Spec) },
		Validate:       func(c *corev1.PersistentVolumeClaim) field.ErrorList { return ValidateClaim(&c.Spec, specPath) },
		ValidateUpdate: validateClaimUpdate,
		Fields: map[string]func(*corev1.PersistentVolumeClaim) string{
			"name": func(c *corev1.PersistentVolumeClaim) string { return c.Name },
		},
		Columns: claimColumns(),
	}
}

func claimColumns() []resource.Column[*corev1.PersistentVolumeClaim] {
	// Size and modes are those of the volume, so they show when there is one.
	bound := func(text func(*corev1.PersistentVolumeClaim) string) func(*corev1.PersistentVolumeClaim) any {
		return func(c *corev1.PersistentVolumeClaim) any {
			if c.Spec.VolumeName == "" {
				return ""
			}
			return text(c)
		}
	}
	return []resource.Column[*corev1.PersistentVolumeClaim]{
		{Name: "Status", Description: "Whether the claim is bound.", Value: func(c *corev1.PersistentVolumeClaim) any {
			if c.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(c.Status.Phase)
		}},
		{Name: "Volume", Description: "The volume that the claim is bound to.", Value: func(c *corev1.PersistentVolumeClaim) any { return c.Spec.VolumeName }},
		{Name: "Capacity", Description: "Size of the volume.", Value: bound(func(c *corev1.PersistentVolumeClaim) string {
			size := c.Status.Capacity[corev1.ResourceStorage]
			return size.String()
		})},
		{Name: "Access Modes", Description: "How the volume can be mounted.", Value: bound(func(c *corev1.PersistentVolumeClaim) string { return accessModesText(c.Status.AccessModes) })},
		{Name: "StorageClass", Description: "Class of the claim.", Value: func(c *corev1.PersistentVolumeClaim) any {
			if class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
				return class
			}
			return ptr.Deref(c.Spec.StorageClassName, "")
		}},
		{Name: "VolumeAttributesClass", Description: "Attributes class of the claim.", Value: func(c *corev1.PersistentVolumeClaim) any {
			return orUnset(c.Spec.VolumeAttributesClassName)
		}},
		resource.Age[*corev1.PersistentVolumeClaim](),
		{Name: "VolumeMode", Wide: true, Description: "Filesystem or Block.", Value: func(c *corev1.PersistentVolumeClaim) any { return modeText(c.Spec.VolumeMode) }},
	}
}

// agreeDataSources: dataSource and dataSourceRef are two names of one thing, of which the second can say more.
func agreeDataSources(s *corev1.PersistentVolumeClaimSpec) {
	switch {
	case s.DataSource != nil && s.DataSourceRef == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: s.DataSource.APIGroup, Kind: s.DataSource.Kind, Name: s.DataSource.Name}
	case s.DataSource == nil && s.DataSourceRef != nil && s.DataSourceRef.Namespace == nil:
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: s.DataSourceRef.APIGroup, Kind: s.DataSourceRef.Kind, Name: s.DataSourceRef.Name}
	}
}

// ValidateClaim checks the specification of a claim, which templates of claims share.
func ValidateClaim(s *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	errs := validateAccessModes(s.AccessModes, path.Child("accessModes"))
	errs = append(errs, rules.Selector(s.Selector, path.Child("selector"))...)
	size, ok := s.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		errs = append(errs, field.Required(path.Child("resources").Key("storage"), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("resources").Key("storage"), size.String(), "must be greater than zero"))
	}
	if s.StorageClassName != nil && *s.StorageClassName != "" {
		errs = append(errs, rules.Subdomain(*s.StorageClassName, path.Child("storageClassName"))...)
	}
	return append(errs, rules.OneOfPointer(s.VolumeMode, path.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
}

// validateClaimUpdate lets a bound claim grow, and an unbound one be bound; all else stays.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := ValidateClaim(&c.Spec, specPath)
	now := c.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		now.VolumeName = old.Spec.VolumeName
	}
	// The default class may be filled in later.
	if old.Spec.StorageClassName == nil {
		now.StorageClassName = nil
	}
	now.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	bound := old.Status.Phase == corev1.ClaimBound
	if bound && now.Resources.Requests != nil {
		now.Resources.Requests[corev1.ResourceStorage] = old.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if !equality.Semantic.DeepEqual(*now, old.Spec) {
		errs = append(errs, field.Forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size, before := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	granted := old.Status.Capacity[corev1.ResourceStorage]
	if bound && size.Cmp(before) < 0 && size.Cmp(granted) <= 0 {
		errs = append(errs, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return errs
}
