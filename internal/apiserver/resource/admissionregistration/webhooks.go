package admissionregistration

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

const (
	defaultTimeoutSeconds = 10
	maxTimeoutSeconds     = 30
	defaultServicePort    = 443
)

func validatingWebhooks() *resource.Kind[*admissionregistrationv1.ValidatingWebhookConfiguration] {
	return &resource.Kind[*admissionregistrationv1.ValidatingWebhookConfiguration]{
		Resource:    "validatingwebhookconfigurations",
		Categories:  categories,
		ClusterWide: true,
		Generation:  true,
		New: func() *admissionregistrationv1.ValidatingWebhookConfiguration {
			return &admissionregistrationv1.ValidatingWebhookConfiguration{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.ValidatingWebhookConfigurationList{} },
		Default: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				defaultWebhook(ofValidating(&c.Webhooks[i]))
			}
		},
		Validate: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) field.ErrorList {
			var hooks []webhook
			for i := range c.Webhooks {
				hooks = append(hooks, ofValidating(&c.Webhooks[i]))
			}
			return validateWebhooks(hooks)
		},
		Columns: []resource.Column[*admissionregistrationv1.ValidatingWebhookConfiguration]{
			{Name: "Webhooks", Type: "integer", Description: "Number of webhooks.", Value: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) any { return int64(len(c.Webhooks)) }},
			resource.Age[*admissionregistrationv1.ValidatingWebhookConfiguration](),
		},
	}
}

func mutatingWebhooks() *resource.Kind[*admissionregistrationv1.MutatingWebhookConfiguration] {
	return &resource.Kind[*admissionregistrationv1.MutatingWebhookConfiguration]{
		Resource:    "mutatingwebhookconfigurations",
		Categories:  categories,
		ClusterWide: true,
		Generation:  true,
		New: func() *admissionregistrationv1.MutatingWebhookConfiguration {
			return &admissionregistrationv1.MutatingWebhookConfiguration{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.MutatingWebhookConfigurationList{} },
		Default: func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				if w := &c.Webhooks[i]; w.ReinvocationPolicy == nil {
					w.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
				}
				defaultWebhook(ofMutating(&c.Webhooks[i]))
			}
		},
		Validate: func(c *admissionregistrationv1.MutatingWebhookConfiguration) field.ErrorList {
			var hooks []webhook
			var errs field.ErrorList
			for i := range c.Webhooks {
				hooks = append(hooks, ofMutating(&c.Webhooks[i]))
				errs = append(errs, rules.OneOfPointer(c.Webhooks[i].ReinvocationPolicy, field.NewPath("webhooks").Index(i).Child("reinvocationPolicy"),
					admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
			}
			return append(validateWebhooks(hooks), errs...)
		},
		Columns: []resource.Column[*admissionregistrationv1.MutatingWebhookConfiguration]{
			{Name: "Webhooks", Type: "integer", Description: "Number of webhooks.", Value: func(c *admissionregistrationv1.MutatingWebhookConfiguration) any { return int64(len(c.Webhooks)) }},
			resource.Age[*admissionregistrationv1.MutatingWebhookConfiguration](),
		},
	}
}

// webhook is what both kinds of webhook share.
type webhook struct {
	name       string
	client     *admissionregistrationv1.WebhookClientConfig
	rules      []admissionregistrationv1.RuleWithOperations
	failure    **admissionregistrationv1.FailurePolicyType
	match      **admissionregistrationv1.MatchPolicyType
	namespaces **metav1.LabelSelector
	objects    **metav1.LabelSelector
	effects    *admissionregistrationv1.SideEffectClass
	timeout    **int32
	versions   []string
	conditions []admissionregistrationv1.MatchCondition
}

func ofValidating(w *admissionregistrationv1.ValidatingWebhook) webhook {
	return webhook{
		w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, w.SideEffects, &w.TimeoutSeconds,
		w.AdmissionReviewVersions, w.MatchConditions,
	}
}

func ofMutating(w *admissionregistrationv1.MutatingWebhook) webhook {
	return webhook{
		w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, w.SideEffects, &w.TimeoutSeconds,
		w.AdmissionReviewVersions, w.MatchConditions,
	}
}

func defaultWebhook(w webhook) {
	defaultFailure(w.failure)
	defaultMatch(w.match, w.namespaces, w.objects)
	if *w.timeout == nil {
		*w.timeout = ptr.To[int32](defaultTimeoutSeconds)
	}
	if s := w.client.Service; s != nil && s.Port == nil {
		s.Port = ptr.To[int32](defaultServicePort)
	}
	for i := range w.rules {
		defaultScope(&w.rules[i].Rule)
	}
}

func validateWebhooks(hooks []webhook) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, w := range hooks {
		path := field.NewPath("webhooks").Index(i)
		errs = append(errs, utilvalidation.IsFullyQualifiedName(path.Child("name"), w.name)...)
		if names.Has(w.name) {
			errs = append(errs, field.Duplicate(path.Child("name"), w.name))
		}
		names.Insert(w.name)
		errs = append(errs, validateWebhook(w, path)...)
	}
	return errs
}

func validateWebhook(w webhook, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range w.rules {
		errs = append(errs, validateRule(&w.rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, rules.OneOfPointer(*w.failure, path.Child("failurePolicy"), admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, rules.OneOfPointer(*w.match, path.Child("matchPolicy"), admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)...)
	if w.effects == nil {
		errs = append(errs, field.Required(path.Child("sideEffects"), fmt.Sprintf("must specify one of %v", []string{"None", "NoneOnDryRun"})))
	} else {
		errs = append(errs, rules.OneOf(*w.effects, path.Child("sideEffects"), admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)...)
	}
	if t := ptr.Deref(*w.timeout, defaultTimeoutSeconds); t < 1 || t > maxTimeoutSeconds {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), t, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, rules.Selector(*w.namespaces, path.Child("namespaceSelector"))...)
	errs = append(errs, rules.Selector(*w.objects, path.Child("objectSelector"))...)
	errs = append(errs, validateConditions(w.conditions, path.Child("matchConditions"))...)
	versions := path.Child("admissionReviewVersions")
	switch {
	case len(w.versions) == 0:
		errs = append(errs, field.Required(versions, fmt.Sprintf("must specify one of %v", "v1, v1beta1")))
	case !slices.Contains(w.versions, "v1") && !slices.Contains(w.versions, "v1beta1"):
		errs = append(errs, field.Invalid(versions, w.versions, "must include at least one of v1, v1beta1"))
	}
	return append(errs, validateClient(w.client, path.Child("clientConfig"))...)
}

func validateClient(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil {
			return field.ErrorList{field.Required(path.Child("url"), "url must be a valid URL: "+err.Error())}
		}
		if u.Scheme != "https" || u.Host == "" {
			return field.ErrorList{field.Invalid(path.Child("url"), u.Scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]")}
		}
		return nil
	}
	service := path.Child("service")
	errs := append(rules.Required(c.Service.Name, service.Child("name")), rules.Required(c.Service.Namespace, service.Child("namespace"))...)
	errs = append(errs, rules.Port(ptr.Deref(c.Service.Port, defaultServicePort), service.Child("port"))...)
	if p := c.Service.Path; p != nil && !strings.HasPrefix(*p, "/") {
		errs = append(errs, field.Invalid(service.Child("path"), *p, "must start with a '/'"))
	}
	return errs
}

func validateRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), ""))
	}
	for i, o := range r.Operations {
		if o == admissionregistrationv1.OperationAll && len(r.Operations) > 1 {
			errs = append(errs, field.Invalid(path.Child("operations"), r.Operations, "if '*' is present, must not specify other operations"))
		}
		errs = append(errs, rules.OneOf(o, path.Child("operations").Index(i), admissionregistrationv1.OperationAll, admissionregistrationv1.Connect,
			admissionregistrationv1.Create, admissionregistrationv1.Delete, admissionregistrationv1.Update)...)
	}
	for name, list := range map[string][]string{"apiGroups": r.APIGroups, "apiVersions": r.APIVersions, "resources": r.Resources} {
		if len(list) == 0 {
			errs = append(errs, field.Required(path.Child(name), ""))
		}
		if name != "resources" && len(list) > 1 && slices.Contains(list, "*") {
			errs = append(errs, field.Invalid(path.Child(name), list, "if '*' is present, must not specify other "+name))
		}
	}
	return append(errs, rules.OneOfPointer(r.Scope, path.Child("scope"), admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
}

func validateConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path) field.ErrorList {
	const most = 64
	errs := rules.AtMost(conditions, most, path)
	names := sets.New[string]()
	for i, c := range conditions {
		errs = append(errs, rules.Qualified(c.Name, path.Index(i).Child("name"))...)
		errs = append(errs, rules.Required(strings.TrimSpace(c.Expression), path.Index(i).Child("expression"))...)
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), c.Name))
		}
		names.Insert(c.Name)
	}
	return errs
}
