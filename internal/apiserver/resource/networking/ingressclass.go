package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

const maxControllerName = 250

func ingressClass() *resource.Kind[*networkingv1.IngressClass] {
	return &resource.Kind[*networkingv1.IngressClass]{
		Resource:    "ingressclasses",
		ClusterWide: true,
		Generation:  true,
		New:         func() *networkingv1.IngressClass { return &networkingv1.IngressClass{} },
		NewList:     func() runtime.Object { return &networkingv1.IngressClassList{} },
		Default: func(c *networkingv1.IngressClass) {
			if p := c.Spec.Parameters; p != nil && p.Scope == nil {
				p.Scope = ptr.To(networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		},
		Validate: validateIngressClass,
		ValidateUpdate: func(c, old *networkingv1.IngressClass) field.ErrorList {
			return append(validateIngressClass(c), rules.Unchanged(c.Spec.Controller, old.Spec.Controller, spec.Child("controller"))...)
		},
		Columns: []resource.Column[*networkingv1.IngressClass]{
			{Name: "Controller", Description: "Who acts on ingresses of the class.", Value: func(c *networkingv1.IngressClass) any { return c.Spec.Controller }},
			{Name: "Parameters", Description: "Where the controller is configured.", Value: func(c *networkingv1.IngressClass) any { return parametersText(c.Spec.Parameters) }},
			resource.Age[*networkingv1.IngressClass](),
		},
	}
}

func parametersText(p *networkingv1.IngressClassParametersReference) string {
	if p == nil {
		return resource.None
	}
	kind := p.Kind
	if p.APIGroup != nil {
		kind += "." + *p.APIGroup
	}
	return kind + "/" + p.Name
}

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	path := spec.Child("controller")
	var errs field.ErrorList
	switch domain, rest, ok := strings.Cut(c.Spec.Controller, "/"); {
	case len(c.Spec.Controller) > maxControllerName:
		errs = append(errs, field.TooLong(path, c.Spec.Controller, maxControllerName))
	case c.Spec.Controller == "":
		errs = append(errs, field.Required(path, ""))
	case !ok || rest == "":
		errs = append(errs, field.Invalid(path, c.Spec.Controller, "must be a domain-prefixed path (such as \"acme.io/foo\")"))
	default:
		errs = append(errs, rules.Invalid(utilvalidation.IsDNS1123Subdomain(domain), path, c.Spec.Controller)...)
	}
	p := c.Spec.Parameters
	if p == nil {
		return errs
	}
	path = spec.Child("parameters")
	errs = append(errs, rules.Required(p.Kind, path.Child("kind"))...)
	errs = append(errs, rules.Required(p.Name, path.Child("name"))...)
	namespaced := ptr.Deref(p.Scope, "") == networkingv1.IngressClassParametersReferenceScopeNamespace
	errs = append(errs, rules.OneOf(ptr.Deref(p.Scope, ""), path.Child("scope"),
		networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace)...)
	if namespaced && ptr.Deref(p.Namespace, "") == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	}
	if !namespaced && p.Namespace != nil {
		errs = append(errs, field.Forbidden(path.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	}
	return errs
}
