package admissionregistration

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

var spec = field.NewPath("spec")

func validatingPolicy() *resource.Kind[*admissionregistrationv1.ValidatingAdmissionPolicy] {
	return &resource.Kind[*admissionregistrationv1.ValidatingAdmissionPolicy]{
		Resource:    "validatingadmissionpolicies",
		Categories:  categories,
		ClusterWide: true,
		HasStatus:   true,
		Generation:  true,
		New: func() *admissionregistrationv1.ValidatingAdmissionPolicy {
			return &admissionregistrationv1.ValidatingAdmissionPolicy{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyList{} },
		Default: func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			defaultFailure(&p.Spec.FailurePolicy)
			defaultMatchResources(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
			errs := validatePolicy(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy, p.Spec.MatchConditions)
			if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
				errs = append(errs, field.Required(spec.Child("validations"), "validations or auditAnnotations must be non-empty"))
			}
			for i, v := range p.Spec.Validations {
				errs = append(errs, rules.Required(strings.TrimSpace(v.Expression), spec.Child("validations").Index(i).Child("expression"))...)
			}
			return append(errs, validateVariables(p.Spec.Variables)...)
		},
		Columns: []resource.Column[*admissionregistrationv1.ValidatingAdmissionPolicy]{
			{Name: "Validations", Type: "integer", Description: "Number of checks.", Value: func(p *admissionregistrationv1.ValidatingAdmissionPolicy) any { return int64(len(p.Spec.Validations)) }},
			{Name: "ParamKind", Description: "The kind of the policy's parameters.", Value: func(p *admissionregistrationv1.ValidatingAdmissionPolicy) any { return paramKindText(p.Spec.ParamKind) }},
			resource.Age[*admissionregistrationv1.ValidatingAdmissionPolicy](),
		},
	}
}

func mutatingPolicy() *resource.Kind[*admissionregistrationv1.MutatingAdmissionPolicy] {
	return &resource.Kind[*admissionregistrationv1.MutatingAdmissionPolicy]{
		Resource:    "mutatingadmissionpolicies",
		Categories:  categories,
		ClusterWide: true,
		Generation:  true,
		New: func() *admissionregistrationv1.MutatingAdmissionPolicy {
			return &admissionregistrationv1.MutatingAdmissionPolicy{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyList{} },
		Default: func(p *admissionregistrationv1.MutatingAdmissionPolicy) {
			defaultFailure(&p.Spec.FailurePolicy)
			defaultMatchResources(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionregistrationv1.MutatingAdmissionPolicy) field.ErrorList {
			errs := validatePolicy(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy, p.Spec.MatchConditions)
			errs = append(errs, rules.OneOf(p.Spec.ReinvocationPolicy, spec.Child("reinvocationPolicy"),
				admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
			if len(p.Spec.Mutations) == 0 {
				errs = append(errs, field.Required(spec.Child("mutations"), "mutations must contain at least one item"))
			}
			for i, m := range p.Spec.Mutations {
				errs = append(errs, validateMutation(m, spec.Child("mutations").Index(i))...)
			}
			return append(errs, validateVariables(p.Spec.Variables)...)
		},
		Columns: []resource.Column[*admissionregistrationv1.MutatingAdmissionPolicy]{
			{Name: "Mutations", Type: "integer", Description: "Number of changes.", Value: func(p *admissionregistrationv1.MutatingAdmissionPolicy) any { return int64(len(p.Spec.Mutations)) }},
			{Name: "ParamKind", Description: "The kind of the policy's parameters.", Value: func(p *admissionregistrationv1.MutatingAdmissionPolicy) any { return paramKindText(p.Spec.ParamKind) }},
			resource.Age[*admissionregistrationv1.MutatingAdmissionPolicy](),
		},
	}
}

func validateMutation(m admissionregistrationv1.Mutation, path *field.Path) field.ErrorList {
	errs := rules.OneOf(m.PatchType, path.Child("patchType"), admissionregistrationv1.PatchTypeApplyConfiguration, admissionregistrationv1.PatchTypeJSONPatch)
	switch m.PatchType {
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			return append(errs, field.Required(path.Child("applyConfiguration"), "must be specified when patchType is ApplyConfiguration"))
		}
		return append(errs, rules.Required(strings.TrimSpace(m.ApplyConfiguration.Expression), path.Child("applyConfiguration", "expression"))...)
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			return append(errs, field.Required(path.Child("jsonPatch"), "must be specified when patchType is JSONPatch"))
		}
		return append(errs, rules.Required(strings.TrimSpace(m.JSONPatch.Expression), path.Child("jsonPatch", "expression"))...)
	}
	return errs
}

func paramKindText(k *admissionregistrationv1.ParamKind) string {
	if k == nil {
		return "<unset>"
	}
	return k.APIVersion + "/" + k.Kind
}

func validatePolicy(kind *admissionregistrationv1.ParamKind, match *admissionregistrationv1.MatchResources, failure *admissionregistrationv1.FailurePolicyType,
	conditions []admissionregistrationv1.MatchCondition,
) field.ErrorList {
	errs := rules.OneOfPointer(failure, spec.Child("failurePolicy"), admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
	if kind != nil {
		errs = append(errs, rules.Required(kind.APIVersion, spec.Child("paramKind", "apiVersion"))...)
		errs = append(errs, rules.Required(kind.Kind, spec.Child("paramKind", "kind"))...)
	}
	if match == nil {
		return append(errs, field.Required(spec.Child("matchConstraints"), ""))
	}
	if len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(spec.Child("matchConstraints", "resourceRules"), ""))
	}
	errs = append(errs, validateMatch(match, spec.Child("matchConstraints"))...)
	return append(errs, validateConditions(conditions, spec.Child("matchConditions"))...)
}

func validateMatch(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := rules.OneOfPointer(m.MatchPolicy, path.Child("matchPolicy"), admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)
	errs = append(errs, rules.Selector(m.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, rules.Selector(m.ObjectSelector, path.Child("objectSelector"))...)
	for i := range m.ResourceRules {
		errs = append(errs, validateRule(&m.ResourceRules[i].RuleWithOperations, path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateRule(&m.ExcludeResourceRules[i].RuleWithOperations, path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateVariables(variables []admissionregistrationv1.Variable) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, v := range variables {
		path := spec.Child("variables").Index(i)
		errs = append(errs, rules.Required(v.Name, path.Child("name"))...)
		errs = append(errs, rules.Required(strings.TrimSpace(v.Expression), path.Child("expression"))...)
		if names.Has(v.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), v.Name))
		}
		names.Insert(v.Name)
	}
	return errs
}

func validatingPolicyBinding() *resource.Kind[*admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
	return &resource.Kind[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]{
		Resource:    "validatingadmissionpolicybindings",
		Categories:  categories,
		ClusterWide: true,
		Generation:  true,
		New: func() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
			return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{} },
		Default: func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			defaultMatchResources(b.Spec.MatchResources)
		},
		Validate: func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
			errs := validateBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
			actions, path := sets.New(b.Spec.ValidationActions...), spec.Child("validationActions")
			if len(actions) == 0 {
				errs = append(errs, field.Required(path, "at least one validation action is required"))
			}
			for i, a := range b.Spec.ValidationActions {
				errs = append(errs, rules.OneOf(a, path.Index(i), admissionregistrationv1.Audit, admissionregistrationv1.Deny, admissionregistrationv1.Warn)...)
			}
			if actions.HasAll(admissionregistrationv1.Deny, admissionregistrationv1.Warn) {
				errs = append(errs, field.Invalid(path, b.Spec.ValidationActions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
			}
			return errs
		},
		Columns: bindingColumns(func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (string, *admissionregistrationv1.ParamRef) {
			return b.Spec.PolicyName, b.Spec.ParamRef
		}),
	}
}

func mutatingPolicyBinding() *resource.Kind[*admissionregistrationv1.MutatingAdmissionPolicyBinding] {
	return &resource.Kind[*admissionregistrationv1.MutatingAdmissionPolicyBinding]{
		Resource:    "mutatingadmissionpolicybindings",
		Categories:  categories,
		ClusterWide: true,
		Generation:  true,
		New: func() *admissionregistrationv1.MutatingAdmissionPolicyBinding {
			return &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
		},
		NewList: func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyBindingList{} },
		Default: func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
			defaultMatchResources(b.Spec.MatchResources)
		},
		Validate: func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) field.ErrorList {
			return validateBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
		},
		Columns: bindingColumns(func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) (string, *admissionregistrationv1.ParamRef) {
			return b.Spec.PolicyName, b.Spec.ParamRef
		}),
	}
}

func bindingColumns[T resource.Object](of func(T) (string, *admissionregistrationv1.ParamRef)) []resource.Column[T] {
	return []resource.Column[T]{
		{Name: "PolicyName", Description: "The policy.", Value: func(obj T) any {
			name, _ := of(obj)
			return name
		}},
		{Name: "ParamRef", Description: "The parameters.", Value: func(obj T) any {
			_, ref := of(obj)
			switch {
			case ref == nil:
				return "<unset>"
			case ref.Namespace != "":
				return ref.Namespace + "/" + ref.Name
			}
			return "*/" + ref.Name
		}},
		resource.Age[T](),
	}
}

func validateBinding(policy string, ref *admissionregistrationv1.ParamRef, match *admissionregistrationv1.MatchResources) field.ErrorList {
	errs := rules.Subdomain(policy, spec.Child("policyName"))
	errs = append(errs, validateMatch(match, spec.Child("matchResources"))...)
	if ref == nil {
		return errs
	}
	path := spec.Child("paramRef")
	if ref.Name != "" && ref.Selector != nil {
		errs = append(errs, field.Forbidden(path.Child("name"), "name and selector are mutually exclusive"))
	}
	if ref.Name == "" && ref.Selector == nil {
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	errs = append(errs, rules.Selector(ref.Selector, path.Child("selector"))...)
	return append(errs, rules.OneOf(ptr.Deref(ref.ParameterNotFoundAction, ""), path.Child("parameterNotFoundAction"),
		admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction)...)
}
