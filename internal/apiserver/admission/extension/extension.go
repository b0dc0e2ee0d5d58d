// Package extension is the admission that users add to a cluster by objects of its API: webhooks and policies, each to change what is admitted and to refuse it.
//
// The four plugins are k8s.io/apiserver's. What is here gives them what they need of this server: the way to services through the cluster's network, a
// mapper of kinds that notices new ones, informers that they may stop. Most clusters have no such objects, and the plugins are not for nothing (each brings an
// environment of CEL, the policies clients and loops of their own): so a plugin is made when the first object that concerns it is seen.
//
//	informers of configurations ──► onUse ──(first object)──► the library's plugin
//	request ──► onUse: none seen, admitted; else ──► the plugin ──► webhook at a URL, or at an endpoint of a service
package extension

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	admissionregistration "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/internal/apiserver/webhook"
)

// Config is what the plugins need of the server.
type Config struct {
	// Client and Dynamic act as the server itself. Informers is started by the caller.
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface
	Informers informers.SharedInformerFactory
	// Authorizer answers what expressions ask of the variable authorizer.
	Authorizer authorizer.UnconditionalAuthorizer
	// Drained is closed when the server has answered its last request.
	Drained <-chan struct{}
	// Services reaches webhooks that are services.
	Services webhook.Services
}

// Operations that the plugins are asked about; a deletion has no object that a policy could change.
var (
	operations = []admission.Operation{admission.Connect, admission.Create, admission.Delete, admission.Update}
	changes    = []admission.Operation{admission.Connect, admission.Create, admission.Update}
)

func (c Config) kinds() admissionregistration.Interface {
	return c.Informers.Admissionregistration().V1()
}

// MutatingPolicies is the plugin MutatingAdmissionPolicy.
func (c Config) MutatingPolicies() (admission.Interface, error) {
	return newOnUse(changes, c.mutatingPolicies, c.kinds().MutatingAdmissionPolicies().Informer(), c.kinds().MutatingAdmissionPolicyBindings().Informer())
}

// MutatingWebhooks is the plugin MutatingAdmissionWebhook.
func (c Config) MutatingWebhooks() (admission.Interface, error) {
	return newOnUse(operations, c.mutatingWebhooks, c.kinds().MutatingWebhookConfigurations().Informer())
}

// ValidatingPolicies is the plugin ValidatingAdmissionPolicy.
func (c Config) ValidatingPolicies() (admission.Interface, error) {
	return newOnUse(operations, c.validatingPolicies, c.kinds().ValidatingAdmissionPolicies().Informer(), c.kinds().ValidatingAdmissionPolicyBindings().Informer())
}

// ValidatingWebhooks is the plugin ValidatingAdmissionWebhook.
func (c Config) ValidatingWebhooks() (admission.Interface, error) {
	return newOnUse(operations, c.validatingWebhooks, c.kinds().ValidatingWebhookConfigurations().Informer())
}

// virtual resources are questions to the server that are never stored. Whoever could refuse or change them could lock everyone out.
var virtual = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}
