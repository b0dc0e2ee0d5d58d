package extension

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

func (c Config) mutatingWebhooks() (admission.Interface, error) {
	plugin, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		return nil, err
	}
	c.equip(plugin.Webhook)
	return plugin, plugin.ValidateInitialization()
}

func (c Config) validatingWebhooks() (admission.Interface, error) {
	plugin, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	c.equip(plugin.Webhook)
	return plugin, plugin.ValidateInitialization()
}

func (c Config) equip(hook *generic.Webhook) {
	hook.SetDrainedNotification(c.Drained)
	hook.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	hook.SetExternalKubeClientSet(c.Client)
	hook.SetExternalKubeInformerFactory(c.Informers)
	hook.SetUnconditionalAuthorizer(c.Authorizer)
	hook.SetExcludedAdmissionResources(virtual)
	hook.SetServiceResolver(c.Services)
	hook.SetAuthenticationInfoResolverWrapper(c.Services.Route)
}
