// Package claimresize is the admission plugin PersistentVolumeClaimResize: a claim can grow when it is bound and its StorageClass allows it.
package claimresize

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "PersistentVolumeClaimResize"

var (
	//lint:ignore ST1005 these are the words of Kubernetes
	errUnbound = errors.New("Only bound persistent volume claims can be expanded")
	errFixed   = errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
)

// Plugin admits claims.
type Plugin struct {
	*admission.Handler
	client  kubernetes.Interface
	classes storagelisters.StorageClassLister
}

// New makes the plugin.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory) *Plugin {
	all := factory.Storage().V1().StorageClasses()
	p := &Plugin{Handler: admission.NewHandler(admission.Update), client: client, classes: all.Lister()}
	p.SetReadyFunc(all.Informer().HasSynced)
	return p
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, ok := target.Of[*corev1.PersistentVolumeClaim](a, corev1.Resource("persistentvolumeclaims"))
	old, also := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	if !ok || !also {
		return nil
	}
	size, before := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case size.Cmp(before) <= 0:
		return nil
	case old.Status.Phase != corev1.ClaimBound:
		return target.Forbidden(a, errUnbound)
	case class(claim) != class(old) || !p.growing(ctx, class(old)):
		return target.Forbidden(a, errFixed)
	}
	return nil
}

// class is the name of the claim's class, in the field or where it was before.
func class(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// growing tells whether volumes of the class can grow. The cache may be behind, so that a class that it does not have is asked of the API.
func (p *Plugin) growing(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	found, err := p.classes.Get(name)
	if apierrors.IsNotFound(err) {
		found, err = p.client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	}
	return err == nil && ptr.Deref(found.AllowVolumeExpansion, false)
}
