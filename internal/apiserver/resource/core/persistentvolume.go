package core

import (
	"context"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func persistentVolume() *resource.Kind[*corev1.PersistentVolume] {
	return &resource.Kind[*corev1.PersistentVolume]{
		Resource:      "persistentvolumes",
		ShortNames:    []string{"pv"},
		ClusterWide:   true,
		HasStatus:     true,
		New:           func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} },
		NewList:       func() runtime.Object { return &corev1.PersistentVolumeList{} },
		Default:       defaultPersistentVolume,
		PrepareCreate: func(_ context.Context, v *corev1.PersistentVolume) { setVolumePhase(v, corev1.VolumePending) },
		PrepareStatus: func(_ context.Context, v, old *corev1.PersistentVolume) {
			if v.Status.Phase != old.Status.Phase {
				setVolumePhase(v, v.Status.Phase)
			}
		},
		Validate: validatePersistentVolume,
		ValidateUpdate: func(v, old *corev1.PersistentVolume) field.ErrorList {
			errs := validatePersistentVolume(v)
			if !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
				errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
			}
			errs = append(errs, rules.Unchanged(v.Spec.VolumeMode, old.Spec.VolumeMode, specPath.Child("volumeMode"))...)
			if old.Spec.NodeAffinity != nil {
				errs = append(errs, rules.Unchanged(v.Spec.NodeAffinity, old.Spec.NodeAffinity, specPath.Child("nodeAffinity"))...)
			}
			return errs
		},
		Columns: volumeColumns(),
	}
}

func volumeColumns() []resource.Column[*corev1.PersistentVolume] {
	return []resource.Column[*corev1.PersistentVolume]{
		{Name: "Capacity", Description: "Size of the volume.", Value: func(v *corev1.PersistentVolume) any {
			size := v.Spec.Capacity[corev1.ResourceStorage]
			return size.String()
		}},
		{Name: "Access Modes", Description: "How the volume can be mounted.", Value: func(v *corev1.PersistentVolume) any { return accessModesText(v.Spec.AccessModes) }},
		{Name: "Reclaim Policy", Description: "What becomes of the volume when its claim goes.", Value: func(v *corev1.PersistentVolume) any { return string(v.Spec.PersistentVolumeReclaimPolicy) }},
		{Name: "Status", Description: "Whether the volume is bound.", Value: func(v *corev1.PersistentVolume) any {
			if v.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(v.Status.Phase)
		}},
		{Name: "Claim", Description: "The claim that the volume is bound to.", Value: func(v *corev1.PersistentVolume) any {
			if v.Spec.ClaimRef == nil {
				return ""
			}
			return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
		}},
		{Name: "StorageClass", Description: "Class of the volume.", Value: func(v *corev1.PersistentVolume) any { return storageClassOfVolume(v) }},
		{Name: "VolumeAttributesClass", Description: "Attributes class of the volume.", Value: func(v *corev1.PersistentVolume) any {
			return orUnset(v.Spec.VolumeAttributesClassName)
		}},
		{Name: "Reason", Description: "Why the volume is in its state.", Value: func(v *corev1.PersistentVolume) any { return v.Status.Reason }},
		resource.Age[*corev1.PersistentVolume](),
		{Name: "VolumeMode", Wide: true, Description: "Filesystem or Block.", Value: func(v *corev1.PersistentVolume) any { return modeText(v.Spec.VolumeMode) }},
	}
}

func storageClassOfVolume(v *corev1.PersistentVolume) string {
	if class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return v.Spec.StorageClassName
}

// accessModesText shortens the modes, in a fixed order, as "RWO,RWX".
func accessModesText(modes []corev1.PersistentVolumeAccessMode) string {
	has := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, mode := range modes {
		has[mode] = true
	}
	var parts []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if has[m.mode] {
			parts = append(parts, m.short)
		}
	}
	return strings.Join(parts, ",")
}

func modeText(mode *corev1.PersistentVolumeMode) string {
	return string(ptr.Deref(mode, "<unset>"))
}

func orUnset(text *string) string { return ptr.Deref(text, "<unset>") }

func setVolumePhase(v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	now := metav1.Now()
	v.Status.Phase, v.Status.LastPhaseTransitionTime = phase, &now
}

func defaultPersistentVolume(v *corev1.PersistentVolume) {
	if v.Status.Phase == "" {
		v.Status.Phase = corev1.VolumePending
	}
	if v.Spec.PersistentVolumeReclaimPolicy == "" {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if v.Spec.VolumeMode == nil {
		v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
	if h := v.Spec.HostPath; h != nil && h.Type == nil {
		h.Type = ptr.To(corev1.HostPathUnset)
	}
	if i := v.Spec.ISCSI; i != nil && i.ISCSIInterface == "" {
		i.ISCSIInterface = "default"
	}
}

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	errs := validateAccessModes(v.Spec.AccessModes, specPath.Child("accessModes"))
	size, ok := v.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case len(v.Spec.Capacity) == 0:
		errs = append(errs, field.Required(specPath.Child("capacity"), ""))
	case !ok || len(v.Spec.Capacity) > 1:
		errs = append(errs, field.NotSupported(specPath.Child("capacity"), v.Spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	case size.Sign() <= 0:
		errs = append(errs, field.Invalid(specPath.Child("capacity").Key("storage"), size.String(), "must be greater than zero"))
	}
	errs = append(errs, rules.OneOf(v.Spec.PersistentVolumeReclaimPolicy, specPath.Child("persistentVolumeReclaimPolicy"),
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, rules.OneOfPointer(v.Spec.VolumeMode, specPath.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if v.Spec.StorageClassName != "" {
		errs = append(errs, rules.Subdomain(v.Spec.StorageClassName, specPath.Child("storageClassName"))...)
	}
	switch n := volumeSources(&v.Spec.PersistentVolumeSource); {
	case n == 0:
		errs = append(errs, field.Required(specPath, "must specify a volume type"))
	case n > 1:
		errs = append(errs, field.Forbidden(specPath, "may not specify more than 1 volume type"))
	}
	if h := v.Spec.HostPath; h != nil {
		errs = append(errs, rules.Required(h.Path, specPath.Child("hostPath", "path"))...)
	}
	if l := v.Spec.Local; l != nil {
		errs = append(errs, rules.Required(l.Path, specPath.Child("local", "path"))...)
		if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations"), "Local volume requires node affinity"))
		}
	}
	if c := v.Spec.CSI; c != nil {
		errs = append(errs, rules.Required(c.Driver, specPath.Child("csi", "driver"))...)
		errs = append(errs, rules.Required(c.VolumeHandle, specPath.Child("csi", "volumeHandle"))...)
	}
	return errs
}

// volumeSources counts the kinds of volume that are given.
func volumeSources(s *corev1.PersistentVolumeSource) int {
	n := 0
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			n++
		}
	}
	return n
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	once := false
	for _, mode := range modes {
		errs = append(errs, rules.OneOf(mode, path, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
		once = once || mode == corev1.ReadWriteOncePod
	}
	if once && len(modes) > 1 {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}
