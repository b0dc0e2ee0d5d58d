// Package storageclass is the admission plugin DefaultStorageClass: a new claim that says nothing of a class gets the default one, if there is one.
package storageclass

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/bayplan/bayplan/internal/apiserver/admission/classes"
	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "DefaultStorageClass"

const (
	marker     = "storageclass.kubernetes.io/is-default-class"
	betaMarker = "storageclass.beta.kubernetes.io/is-default-class"
)

// Plugin admits claims.
type Plugin struct {
	*admission.Handler
	classes storagelisters.StorageClassLister
}

// New makes the plugin.
func New(factory informers.SharedInformerFactory) *Plugin {
	all := factory.Storage().V1().StorageClasses()
	p := &Plugin{Handler: admission.NewHandler(admission.Create), classes: all.Lister()}
	p.SetReadyFunc(all.Informer().HasSynced)
	return p
}

// Admit implements admission.MutationInterface. A claim with the class "" wants a volume without one.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, ok := target.Of[*corev1.PersistentVolumeClaim](a, corev1.Resource("persistentvolumeclaims"))
	if !ok || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, named := claim.Annotations[corev1.BetaStorageClassAnnotation]; named {
		return nil
	}
	all, err := p.classes.List(labels.Everything())
	if err != nil {
		return target.Forbidden(a, err)
	}
	if class, ok := classes.Default(all, marker, betaMarker); ok {
		name := class.Name
		claim.Spec.StorageClassName = &name
	}
	return nil
}
