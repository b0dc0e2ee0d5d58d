package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verbSets are names for several verbs.
var verbSets = map[string][]string{
	"read":  {"get", "list", "watch"},
	"write": {"create", "update", "patch", "delete", "deletecollection"},
	"all":   {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
}

// reader reads a text of the policy. rules are those of the role that was begun last.
type reader struct {
	policy *Policy
	rules  *[]rbacv1.PolicyRule
}

func (p *Policy) read(text string) error {
	r := &reader{policy: p}
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var err error
		if line[0] == '\t' {
			err = r.rule(words)
		} else {
			err = r.fact(words)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

func (r *reader) fact(words []string) error {
	r.rules = nil
	switch word, rest := words[0], words[1:]; {
	case word == "clusterrole" && len(rest) > 0:
		return r.clusterRole(rest[0], rest[1:])
	case word == "controller" && len(rest) == 1:
		name := controllerPrefix + rest[0]
		r.policy.bindCluster(name, name, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: rest[0]}})
		return r.clusterRole(name, nil)
	case word == "role" && len(rest) == 2:
		role := &rbacv1.Role{ObjectMeta: meta(rest[0], rest[1])}
		r.policy.Roles = append(r.policy.Roles, role)
		r.rules = &role.Rules
		return nil
	case word == "bind":
		return r.bind(rest)
	case word == "rolebind" && len(rest) > 2:
		return r.bindRole(rest[0], rest[1], rest[2:])
	}
	return fmt.Errorf("%q is no fact of a policy", strings.Join(words, " "))
}

func (r *reader) clusterRole(name string, options []string) error {
	role := &rbacv1.ClusterRole{ObjectMeta: meta("", name)}
	for _, option := range options {
		key, other, _ := strings.Cut(option, "=")
		switch key {
		case "into":
			role.Labels[aggregateLabel+other] = "true"
		case "aggregates":
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{aggregateLabel + other: "true"}},
			}}
		default:
			return fmt.Errorf("%q is no option of a role", option)
		}
	}
	r.policy.ClusterRoles = append(r.policy.ClusterRoles, role)
	r.rules = &role.Rules
	return nil
}

func (r *reader) rule(words []string) error {
	if r.rules == nil {
		return errors.New("a rule without a role")
	}
	if len(words) == 1 && words[0] == "events" {
		words = []string{"create,patch,update", "core,events.k8s.io:", "events"}
	}
	if len(words) < 2 {
		return fmt.Errorf("%q is no rule", strings.Join(words, " "))
	}
	rule := rbacv1.PolicyRule{Verbs: verbs(words[0])}
	if groups, ok := strings.CutSuffix(words[1], ":"); ok {
		for group := range strings.SplitSeq(groups, ",") {
			if group == "core" {
				group = ""
			}
			rule.APIGroups = append(rule.APIGroups, group)
		}
		rule.Resources, rule.ResourceNames = cut(words[2:], "=")
		if len(rule.Resources) == 0 {
			return fmt.Errorf("%q names no resource", strings.Join(words, " "))
		}
	} else {
		rule.NonResourceURLs = slices.Clone(words[1:])
	}
	for _, list := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs} {
		slices.Sort(list)
	}
	*r.rules = append(*r.rules, rule)
	return nil
}

func verbs(list string) []string {
	var out []string
	for word := range strings.SplitSeq(list, ",") {
		if set, ok := verbSets[word]; ok {
			out = append(out, set...)
			continue
		}
		out = append(out, word)
	}
	return out
}

// cut divides words at the first that is mark.
func cut(words []string, mark string) (before, after []string) {
	if i := slices.Index(words, mark); i >= 0 {
		return slices.Clone(words[:i]), slices.Clone(words[i+1:])
	}
	return slices.Clone(words), nil
}

func (r *reader) bind(words []string) error {
	names, who := cut(words, "to")
	subjects, err := subjects(who)
	switch {
	case err != nil:
		return err
	case len(names) == 1:
		r.policy.bindCluster(names[0], names[0], subjects)
	case len(names) == 3 && names[1] == "=":
		r.policy.bindCluster(names[0], names[2], subjects)
	default:
		return fmt.Errorf("%q is no binding", strings.Join(words, " "))
	}
	return nil
}

func (p *Policy) bindCluster(name, role string, subjects []rbacv1.Subject) {
	p.ClusterRoleBindings = append(p.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("", name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
	})
}

func (r *reader) bindRole(namespace, name string, words []string) error {
	role, who := cut(words, "to")
	subjects, err := subjects(who)
	if err != nil {
		return err
	}
	kinds := map[string]string{"role": "Role", "clusterrole": "ClusterRole"}
	if len(role) != 3 || role[0] != "=" || kinds[role[1]] == "" {
		return fmt.Errorf("%q is no binding", strings.Join(words, " "))
	}
	r.policy.RoleBindings = append(r.policy.RoleBindings, &rbacv1.RoleBinding{
		ObjectMeta: meta(namespace, name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kinds[role[1]], Name: role[2]}, Subjects: subjects,
	})
	return nil
}

// subjects reads "user:NAME", "group:NAME" and "serviceaccount:NAMESPACE/NAME".
func subjects(words []string) ([]rbacv1.Subject, error) {
	var out []rbacv1.Subject
	for _, word := range words {
		kind, name, _ := strings.Cut(word, ":")
		s := rbacv1.Subject{APIGroup: rbacv1.GroupName, Name: name}
		switch kind {
		case "user":
			s.Kind = rbacv1.UserKind
		case "group":
			s.Kind = rbacv1.GroupKind
		case "serviceaccount":
			namespace, account, _ := strings.Cut(name, "/")
			s = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
		default:
			return nil, fmt.Errorf("%q is no subject", word)
		}
		if s.Name == "" {
			return nil, fmt.Errorf("%q names nobody", word)
		}
		out = append(out, s)
	}
	return out, nil
}
