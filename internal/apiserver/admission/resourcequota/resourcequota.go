// Package resourcequota is the admission plugin ResourceQuota: what an object uses has to fit into each quota of its namespace, and is added to the quotas' status before the object
// is stored. Writers of one namespace take turns, and a quota that another server changed meanwhile is read again, so that quotas hold under any number of writers.
//
// The library's plugin does that. Here are the rules of what is used, from internal/quota, in the form in which it asks for them; any other resource, also a custom one, is counted by
// number. The quota controller counts down what goes.
package resourcequota

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	library "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
)

// Name is the plugin's name.
const Name = library.PluginName

// workers is how many namespaces are worked on at a time.
const workers = 5

// Plugin admits what quotas limit.
type Plugin struct {
	*admission.Handler
	quotas corelisters.ResourceQuotaLister
	inner  *library.QuotaAdmission
}

// New makes the plugin, which works until stop is closed.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, clock clock.PassiveClock, stop <-chan struct{}) (*Plugin, error) {
	inner, err := library.NewResourceQuota(nil, workers)
	if err != nil {
		return nil, err
	}
	inner.SetDrainedNotification(stop)
	inner.SetExternalKubeClientSet(client)
	inner.SetExternalKubeInformerFactory(factory)
	inner.SetQuotaConfiguration(generic.NewConfiguration(evaluators(clock), ignored))
	quotas := factory.Core().V1().ResourceQuotas()
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), quotas: quotas.Lister(), inner: inner}
	p.SetReadyFunc(quotas.Informer().HasSynced)
	return p, inner.ValidateInitialization()
}

// Validate implements admission.ValidationInterface. Most namespaces have no quota, and their writers need not take turns.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || !p.WaitForReady() {
		return p.inner.Validate(ctx, a, o)
	}
	quotas, err := p.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything())
	if err == nil && len(quotas) == 0 {
		return nil
	}
	return p.inner.Validate(ctx, a, o)
}
