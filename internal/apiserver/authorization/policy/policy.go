// Package policy is the default policy of a cluster: the roles and bindings that are there from the start, and how they are kept.
//
// The text files say what there is. Default reads them into objects, and Ensure compares these with what is stored at each start of the API server and writes
// the difference, so that a permission that a new version needs is there, and what an administrator has added stays.
//
//	users.txt components.txt controllers.txt bayplan.txt ──Default──► Policy ──Ensure──► API
//
// The text has one line a fact; a role's rules follow it, indented:
//
//	clusterrole NAME [into=ROLE] [aggregates=ROLE]      a role, whose rules also belong to another (into), or that gathers rules (aggregates)
//	controller NAME                                     ClusterRole system:controller:NAME, bound to the service account kube-system/NAME
//	role NAMESPACE NAME
//		VERBS GROUPS: RESOURCES [= NAMES]               lists with commas and blanks; "core" is the group without a name
//		VERBS /PATH...
//		events                                          the rule that all have who report events
//	bind [NAME =] CLUSTERROLE to SUBJECT...             a ClusterRoleBinding, named as its role when it has no name of its own
//	rolebind NAMESPACE NAME = role|clusterrole ROLE to SUBJECT...
//
// Verbs may be summed up: read (get, list, watch), write (create, update, patch, delete, deletecollection) and all (both). Lists are sorted as in Kubernetes.
package policy

import (
	"cmp"
	"embed"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What marks an object of the default policy; see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation.
const (
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrappingValue = "rbac-defaults"
	aggregateLabel     = "rbac.authorization.k8s.io/aggregate-to-"
	controllerPrefix   = "system:controller:"
	// NodeRole is the role that says what nodes may do at all.
	NodeRole = "system:node"
)

//go:embed *.txt
var texts embed.FS

// Policy is a set of roles and bindings.
type Policy struct {
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
}

// Default is the policy that a cluster starts with.
func Default() (*Policy, error) {
	p := &Policy{}
	for _, file := range []string{"users.txt", "components.txt", "controllers.txt", "bayplan.txt"} {
		text, err := texts.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := p.read(string(text)); err != nil {
			return nil, fmt.Errorf("default policy, %s: %w", file, err)
		}
	}
	p.aggregate()
	return p, nil
}

// ClusterRole returns the ClusterRole of a name, nil when there is none.
func (p *Policy) ClusterRole(name string) *rbacv1.ClusterRole {
	if i := slices.IndexFunc(p.ClusterRoles, func(r *rbacv1.ClusterRole) bool { return r.Name == name }); i >= 0 {
		return p.ClusterRoles[i]
	}
	return nil
}

// aggregate fills the roles that gather rules, as the controller of aggregated roles does later, so that they can be used from the start and nothing is left for it to
// write. What a role gathers may itself be gathered.
func (p *Policy) aggregate() {
	sorted := slices.SortedFunc(slices.Values(p.ClusterRoles), func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
	for changed := true; changed; {
		changed = false
		for _, r := range sorted {
			if r.AggregationRule == nil {
				continue
			}
			rules := gather(r, sorted)
			changed = changed || len(rules) != len(r.Rules)
			r.Rules = rules
		}
	}
}

func gather(target *rbacv1.ClusterRole, sorted []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i := range target.AggregationRule.ClusterRoleSelectors {
		selector := labels.SelectorFromSet(target.AggregationRule.ClusterRoleSelectors[i].MatchLabels)
		for _, r := range sorted {
			if r == target || !selector.Matches(labels.Set(r.Labels)) {
				continue
			}
			for _, rule := range r.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return sameRule(have, rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{bootstrappingLabel: bootstrappingValue},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}
