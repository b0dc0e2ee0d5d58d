// Package authorization describes the kinds of the group authorization.k8s.io: questions to the server's authorizer.
package authorization

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group. The authorizer is asked for when a question comes: it is made after the kinds.
func Group(authorizer func() authorizer.UnconditionalAuthorizer) resource.Group {
	return resource.Group{
		GroupVersion: authorizationv1.SchemeGroupVersion,
		AddToScheme:  authorizationv1.AddToScheme,
		Kinds:        []resource.Description{subjectReview(authorizer), localReview(authorizer), selfReview(authorizer), rulesReview(authorizer)},
	}
}

var spec = field.NewPath("spec")

func subjectReview(authorizer func() authorizer.UnconditionalAuthorizer) resource.Description {
	return &resource.Review[*authorizationv1.SubjectAccessReview]{
		Resource: "subjectaccessreviews", ClusterWide: true,
		New:      func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} },
		Validate: func(r *authorizationv1.SubjectAccessReview) field.ErrorList { return validateSubject(&r.Spec) },
		Answer: func(ctx context.Context, r *authorizationv1.SubjectAccessReview) error {
			r.Status = ask(ctx, authorizer(), subject(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
			return nil
		},
	}
}

func localReview(authorizer func() authorizer.UnconditionalAuthorizer) resource.Description {
	return &resource.Review[*authorizationv1.LocalSubjectAccessReview]{
		Resource: "localsubjectaccessreviews",
		New:      func() *authorizationv1.LocalSubjectAccessReview { return &authorizationv1.LocalSubjectAccessReview{} },
		Validate: func(r *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
			errs := validateSubject(&r.Spec)
			if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
				errs = append(errs, field.Invalid(spec.Child("resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
			}
			if r.Spec.NonResourceAttributes != nil {
				errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), r.Spec.NonResourceAttributes, "disallowed on this kind of request"))
			}
			return errs
		},
		Answer: func(ctx context.Context, r *authorizationv1.LocalSubjectAccessReview) error {
			r.Status = ask(ctx, authorizer(), subject(&r.Spec), r.Spec.ResourceAttributes, nil)
			return nil
		},
	}
}

func selfReview(authorizer func() authorizer.UnconditionalAuthorizer) resource.Description {
	return &resource.Review[*authorizationv1.SelfSubjectAccessReview]{
		Resource: "selfsubjectaccessreviews", ClusterWide: true,
		New: func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
		Validate: func(r *authorizationv1.SelfSubjectAccessReview) field.ErrorList {
			return validateQuestion(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
		},
		Answer: func(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) error {
			u, ok := request.UserFrom(ctx)
			if !ok {
				return apierrors.NewBadRequest("no user present on request")
			}
			r.Status = ask(ctx, authorizer(), u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
			return nil
		},
	}
}

func validateSubject(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateQuestion(s.ResourceAttributes, s.NonResourceAttributes)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(spec.Child("user"), s.User, "at least one of user or group must be specified"))
	}
	return errs
}

func validateQuestion(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	switch {
	case resource != nil && path != nil:
		return field.ErrorList{field.Invalid(spec.Child("nonResourceAttributes"), path, "cannot be specified in combination with resourceAttributes")}
	case resource == nil && path == nil:
		return field.ErrorList{field.Invalid(spec.Child("resourceAttributes"), resource, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

func subject(s *authorizationv1.SubjectAccessReviewSpec) user.Info {
	extra := map[string][]string{}
	for key, values := range s.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: extra}
}

func ask(ctx context.Context, a authorizer.UnconditionalAuthorizer, u user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := a.Authorize(ctx, attributes(u, resource, path))
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

func attributes(u user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizer.Attributes {
	if resource == nil {
		return authorizer.AttributesRecord{User: u, Verb: path.Verb, Path: path.Path}
	}
	version := resource.Version
	if version == "" {
		version = "*"
	}
	return authorizer.AttributesRecord{
		User: u, Verb: resource.Verb, Namespace: resource.Namespace, APIGroup: resource.Group, APIVersion: version,
		Resource: resource.Resource, Subresource: resource.Subresource, Name: resource.Name, ResourceRequest: true,
	}
}

// rulesReview lists what the user may do, as far as the authorizer can tell without being asked of each thing.
func rulesReview(auth func() authorizer.UnconditionalAuthorizer) resource.Description {
	return &resource.Review[*authorizationv1.SelfSubjectRulesReview]{
		Resource: "selfsubjectrulesreviews", ClusterWide: true,
		New: func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
		Answer: func(ctx context.Context, r *authorizationv1.SelfSubjectRulesReview) error {
			u, ok := request.UserFrom(ctx)
			if !ok {
				return apierrors.NewBadRequest("no user present on request")
			}
			if r.Spec.Namespace == "" {
				return apierrors.NewBadRequest("no namespace on request")
			}
			r.Status = listRules(ctx, auth(), u, r.Spec.Namespace)
			return nil
		},
	}
}

func listRules(ctx context.Context, a authorizer.UnconditionalAuthorizer, u user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	resolver, ok := a.(authorizer.RuleResolver)
	if !ok {
		status.Incomplete = true
		status.EvaluationError = fmt.Sprintf("the authorizer (%T) cannot list rules; ask by SelfSubjectAccessReview", a)
		return status
	}
	resources, paths, incomplete, err := resolver.RulesFor(ctx, u, namespace)
	status.Incomplete = incomplete
	if err != nil {
		status.EvaluationError = err.Error()
	}
	for _, r := range resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.GetVerbs(), APIGroups: r.GetAPIGroups(), Resources: r.GetResources(), ResourceNames: r.GetResourceNames(),
		})
	}
	for _, r := range paths {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.GetVerbs(), NonResourceURLs: r.GetNonResourceURLs()})
	}
	return status
}
