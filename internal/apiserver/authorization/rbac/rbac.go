// Package rbac decides by roles and bindings.
//
// Roles and bindings come from informers and are kept in an index by subject: for each user and group the roles that it has, cluster-wide and by namespace. A decision looks
// up the user and its groups, follows the pointers to roles, and compares rules; it allocates nothing and takes no account of bindings of others.
//
//	informers ──► Index: subject ─► grants (role, reason) ─► rules ──► Authorize, Rules
//
// Service accounts are users with a long name (system:serviceaccount:NAMESPACE:NAME), and are indexed as such.
package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorize implements authorizer.Authorizer. Roles never deny: what no rule allows is left to other authorizers.
func (x *Index) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	if u == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if reason, ok := x.allows(u, a); ok {
		return authorizer.DecisionAllow, reason, nil
	}
	return authorizer.DecisionNoOpinion, x.missing(u, a.GetNamespace()), nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (x *Index) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(x.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer: rules have no conditions.
func (*Index) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver.
func (x *Index) RulesFor(_ context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	rules, err := x.Rules(u, namespace)
	for i := range rules {
		r := &rules[i]
		if len(r.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return resources, paths, false, err
}

// Rules are all rules that the user has in the namespace, those that hold everywhere included. Bindings whose role is not there make an error, beside
// the rules of the others.
func (x *Index) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var rules []rbacv1.PolicyRule
	var lost notFound
	x.visit(u, namespace, func(g *grant) bool {
		if !g.role.found {
			lost = append(lost, g.role)
		}
		rules = append(rules, g.role.rules...)
		return true
	})
	return rules, lost.err()
}

func (x *Index) allows(u user.Info, a authorizer.Attributes) (reason string, ok bool) {
	x.visit(u, a.GetNamespace(), func(g *grant) bool {
		for i := range g.role.rules {
			if Allows(&g.role.rules[i], a) {
				reason, ok = g.reason, true
				return false
			}
		}
		return true
	})
	return reason, ok
}

// missing says which roles the user would have if they were there.
func (x *Index) missing(u user.Info, namespace string) string {
	var lost notFound
	x.visit(u, namespace, func(g *grant) bool {
		if !g.role.found {
			lost = append(lost, g.role)
		}
		return true
	})
	if len(lost) == 0 {
		return ""
	}
	return "RBAC: " + lost.err().Error()
}

// visit calls f with each grant of the user that holds in the namespace, until it returns false: first what holds everywhere.
func (x *Index) visit(u user.Info, namespace string, f func(*grant) bool) {
	if !visitSubjects(x.cluster, u, f) || namespace == "" {
		return
	}
	if local := x.local[namespace]; local != nil {
		visitSubjects(local, u, f)
	}
}

func visitSubjects(subjects subjects, u user.Info, f func(*grant) bool) bool {
	if !visitGrants(subjects[subject{name: u.GetName()}], f) {
		return false
	}
	for _, group := range u.GetGroups() {
		if !visitGrants(subjects[subject{name: group, group: true}], f) {
			return false
		}
	}
	return true
}

func visitGrants(grants []grant, f func(*grant) bool) bool {
	for i := range grants {
		if !f(&grants[i]) {
			return false
		}
	}
	return true
}
