// Package admissionregistration describes the kinds of the group admissionregistration.k8s.io, one family in a file.
package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: admissionregistrationv1.SchemeGroupVersion,
		AddToScheme:  admissionregistrationv1.AddToScheme,
		Kinds: []resource.Description{
			mutatingPolicy(), mutatingPolicyBinding(), mutatingWebhooks(), validatingPolicy(), validatingPolicyBinding(), validatingWebhooks(),
		},
	}
}

var categories = []string{"api-extensions"}

// defaultFailure: webhooks and policies fail closed.
func defaultFailure(p **admissionregistrationv1.FailurePolicyType) {
	if *p == nil {
		*p = ptr.To(admissionregistrationv1.Fail)
	}
}

// defaultMatch: they look at equivalent resources, and at every object.
func defaultMatch(policy **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector) {
	if *policy == nil {
		*policy = ptr.To(admissionregistrationv1.Equivalent)
	}
	for _, s := range []**metav1.LabelSelector{namespaces, objects} {
		if *s == nil {
			*s = &metav1.LabelSelector{}
		}
	}
}

func defaultScope(r *admissionregistrationv1.Rule) {
	if r.Scope == nil {
		r.Scope = ptr.To(admissionregistrationv1.AllScopes)
	}
}

func defaultMatchResources(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	defaultMatch(&m.MatchPolicy, &m.NamespaceSelector, &m.ObjectSelector)
	for _, list := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range list {
			defaultScope(&list[i].Rule)
		}
	}
}
