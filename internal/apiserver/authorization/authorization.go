// Package authorization tells who may do what, by rules in the form of RBAC. Members of system:masters may do everything; the parts of the cluster have the
// rules of the table in policy.go, and a node's rules end at what is its own.
package authorization

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// New returns the cluster's authorizer. The factory's pods tell which objects a node has to do with.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory) (authorizer.Authorizer, error) {
	node, err := newNodes(client, factory.Core().V1().Pods().Informer())
	if err != nil {
		return nil, err
	}
	return union.New(
		union.NamedAuthorizer{Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), AuthorizerName: "masters"},
		union.NamedAuthorizer{Authorizer: simple(node.authorize), AuthorizerName: "node"},
		union.NamedAuthorizer{Authorizer: simple(authorizeByRules), AuthorizerName: "rules"},
	)
}

// simple is an authorizer without conditions. It allows or has no opinion, and never denies: other authorizers may know more.
type simple func(ctx context.Context, a authorizer.Attributes) bool

// Authorize implements authorizer.Authorizer.
func (s simple) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() != nil && s(ctx, a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (s simple) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(s.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer.
func (simple) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// authorizeByRules allows what a rule of the user or of one of its groups allows.
func authorizeByRules(_ context.Context, a authorizer.Attributes) bool {
	u := a.GetUser()
	for _, subject := range append([]string{"user:" + u.GetName()}, prefixed("group:", u.GetGroups())...) {
		for i := range policy[subject] {
			if Allows(&policy[subject][i], a) {
				return true
			}
		}
	}
	return false
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = prefix + name
	}
	return out
}

// Allows reports whether an RBAC rule allows a request.
func Allows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !matches(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return matchesPath(pattern, a.GetPath()) })
	}
	return matches(rule.APIGroups, a.GetAPIGroup()) && matchesResource(rule.Resources, a) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

func matches(allowed []string, value string) bool {
	return slices.Contains(allowed, "*") || slices.Contains(allowed, value)
}

// matchesResource: "pods" does not cover "pods/log", "*" covers all, "*/scale" that sub-resource of every resource.
func matchesResource(allowed []string, a authorizer.Attributes) bool {
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	if matches(allowed, resource) {
		return true
	}
	return a.GetSubresource() != "" && slices.Contains(allowed, "*/"+a.GetSubresource())
}

func matchesPath(pattern, path string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == path || wild && strings.HasPrefix(path, prefix)
}
