// Package storageprotection is the admission plugin StorageObjectInUseProtection: claims, volumes and attributes classes get a finalizer, which a controller takes away when
// nothing uses them any more.
package storageprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "StorageObjectInUseProtection"

const (
	claimFinalizer  = "kubernetes.io/pvc-protection"
	volumeFinalizer = "kubernetes.io/pv-protection"
	classFinalizer  = "kubernetes.io/vac-protection"
)

// Plugin admits claims, volumes and attributes classes.
type Plugin struct{ *admission.Handler }

// New makes the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create)} }

// Admit implements admission.MutationInterface.
func (*Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if claim, ok := target.Of[*corev1.PersistentVolumeClaim](a, corev1.Resource("persistentvolumeclaims")); ok {
		protect(claim, claimFinalizer)
	}
	if volume, ok := target.Of[*corev1.PersistentVolume](a, corev1.Resource("persistentvolumes")); ok {
		protect(volume, volumeFinalizer)
	}
	if class, ok := target.Of[*storagev1.VolumeAttributesClass](a, storagev1.Resource("volumeattributesclasses")); ok {
		protect(class, classFinalizer)
	}
	return nil
}

func protect(obj metav1.Object, finalizer string) {
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
	}
}
