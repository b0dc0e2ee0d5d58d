package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Allows reports whether a rule allows a request.
func Allows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !matches(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return matchesPath(rule.NonResourceURLs, a.GetPath())
	}
	return matches(rule.APIGroups, a.GetAPIGroup()) && matchesResource(rule.Resources, a.GetResource(), a.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

// AnyAllows reports whether one of the rules allows a request.
func AnyAllows(rules []rbacv1.PolicyRule, a authorizer.Attributes) bool {
	for i := range rules {
		if Allows(&rules[i], a) {
			return true
		}
	}
	return false
}

func matches(allowed []string, value string) bool {
	for _, s := range allowed {
		if s == value || s == "*" {
			return true
		}
	}
	return false
}

// matchesResource: "pods" does not cover "pods/log", "*" covers all, "*/scale" that sub-resource of every resource.
func matchesResource(allowed []string, resource, sub string) bool {
	for _, s := range allowed {
		if s == "*" || sub == "" && s == resource {
			return true
		}
		if sub == "" {
			continue
		}
		if of, ok := strings.CutSuffix(s, sub); ok && (of == "*/" || len(of) == len(resource)+1 && of[len(resource)] == '/' && of[:len(resource)] == resource) {
			return true
		}
	}
	return false
}

// matchesPath: a * at the end stands for anything.
func matchesPath(allowed []string, path string) bool {
	for _, pattern := range allowed {
		if prefix, wild := strings.CutSuffix(pattern, "*"); pattern == path || wild && strings.HasPrefix(path, strings.TrimRight(prefix, "*")) {
			return true
		}
	}
	return false
}
