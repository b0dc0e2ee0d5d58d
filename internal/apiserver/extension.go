package apiserver

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"

	"github.com/bayplan/bayplan/internal/apiserver/admission/extension"
	"github.com/bayplan/bayplan/internal/apiserver/admission/notyet"
	"github.com/bayplan/bayplan/internal/apiserver/webhook"
)

// extensions are the admission plugins by which users add webhooks and policies of their own, and the one that warns of what nothing acts on yet: only of what was not refused.
func (s *Server) extensions(c *genericapiserver.Config, config Config, factory informers.SharedInformerFactory) ([]admissionPlugin, error) {
	client, err := dynamic.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	e := extension.Config{
		Client: s.client, Dynamic: client, Informers: factory,
		Authorizer: c.Authorization.Authorizer,
		Drained:    c.DrainedNotify(),
		Services:   webhook.Services{Client: s.client, Dial: config.Dial},
	}
	return []admissionPlugin{
		{mutating.PluginName, e.MutatingPolicies},
		{mutatingwebhook.PluginName, e.MutatingWebhooks},
		{validating.PluginName, e.ValidatingPolicies},
		{validatingwebhook.PluginName, e.ValidatingWebhooks},
		{notyet.Name, func() (admission.Interface, error) { return notyet.New(), nil }},
	}, nil
}
