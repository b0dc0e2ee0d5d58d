// Package ingressclass is the admission plugin DefaultIngressClass: a new Ingress that says nothing of a class gets the default one, if there is one.
package ingressclass

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	networkinglisters "k8s.io/client-go/listers/networking/v1"

	"github.com/bayplan/bayplan/internal/apiserver/admission/classes"
	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "DefaultIngressClass"

// annotation is how an Ingress named its class before there was a field for it.
const annotation = "kubernetes.io/ingress.class"

// Plugin admits Ingresses.
type Plugin struct {
	*admission.Handler
	classes networkinglisters.IngressClassLister
}

// New makes the plugin.
func New(factory informers.SharedInformerFactory) *Plugin {
	all := factory.Networking().V1().IngressClasses()
	p := &Plugin{Handler: admission.NewHandler(admission.Create), classes: all.Lister()}
	p.SetReadyFunc(all.Informer().HasSynced)
	return p
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := target.Of[*networkingv1.Ingress](a, networkingv1.Resource("ingresses"))
	if !ok || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, named := ingress.Annotations[annotation]; named {
		return nil
	}
	all, err := p.classes.List(labels.Everything())
	if err != nil {
		return target.Forbidden(a, err)
	}
	if class, ok := classes.Default(all, networkingv1.AnnotationIsDefaultIngressClass); ok {
		name := class.Name
		ingress.Spec.IngressClassName = &name
	}
	return nil
}
