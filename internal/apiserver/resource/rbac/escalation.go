package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/klog/v2"
)

// everything is what one must hold to let a role gather rules: it can gather anything.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (k *Kinds) checkRole(ctx context.Context, obj, old runtime.Object) error {
	if k.mayEscalate(ctx) {
		return nil
	}
	switch r := obj.(type) {
	case *rbacv1.Role:
		return forbidden("roles", r.Name, k.confirmHeld(ctx, r.Rules))
	case *rbacv1.ClusterRole:
		if err := k.confirmHeld(ctx, r.Rules); err != nil {
			return forbidden("clusterroles", r.Name, err)
		}
		former, _ := old.(*rbacv1.ClusterRole)
		if (gathers(r) || gathers(former)) && k.confirmHeld(ctx, everything) != nil {
			return forbidden("clusterroles", r.Name, errors.New("must have cluster-admin privileges to use the aggregationRule"))
		}
		return nil
	}
	return fmt.Errorf("%T is no role", obj)
}

func (k *Kinds) checkBinding(ctx context.Context, obj, _ runtime.Object) error {
	switch b := obj.(type) {
	case *rbacv1.RoleBinding:
		namespace, ok := request.NamespaceFrom(ctx)
		if !ok {
			return apierrors.NewBadRequest("namespace is required")
		}
		return k.checkRef(ctx, "rolebindings", b.Name, b.RoleRef, namespace)
	case *rbacv1.ClusterRoleBinding:
		return k.checkRef(ctx, "clusterrolebindings", b.Name, b.RoleRef, metav1.NamespaceNone)
	}
	return fmt.Errorf("%T is no binding", obj)
}

func (k *Kinds) checkRef(ctx context.Context, resource, name string, ref rbacv1.RoleRef, namespace string) error {
	if k.mayBind(ctx, ref, namespace) {
		return nil
	}
	granted, err := k.rulesOf(ctx, ref, namespace)
	if err != nil {
		return err
	}
	return forbidden(resource, name, k.confirmHeld(ctx, granted))
}

// rulesOf reads a role from the store: what is granted is what it says now, not what caches remember.
func (k *Kinds) rulesOf(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	var store *genericregistry.Store
	switch ref.Kind {
	case "ClusterRole":
		store, ctx = k.clusterRoles, request.WithNamespace(ctx, metav1.NamespaceNone)
	case "Role":
		store, ctx = k.roles, request.WithNamespace(ctx, namespace)
	default:
		return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	obj, err := store.Get(ctx, ref.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if role, ok := obj.(*rbacv1.Role); ok {
		return role.Rules, nil
	}
	return obj.(*rbacv1.ClusterRole).Rules, nil
}

func gathers(r *rbacv1.ClusterRole) bool {
	return r != nil && r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func forbidden(resource, name string, err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewForbidden(rbacv1.Resource(resource), name, err)
}

// mayEscalate: the verb "escalate" on the role of the request.
func (k *Kinds) mayEscalate(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || !info.IsResourceRequest || info.APIGroup != rbacv1.GroupName || info.Resource != "roles" && info.Resource != "clusterroles" {
		return false
	}
	return k.may(ctx, authorizer.AttributesRecord{Verb: "escalate", Resource: info.Resource, Name: info.Name, Namespace: info.Namespace})
}

// mayBind: the verb "bind" on the role, in the namespace of the binding.
func (k *Kinds) mayBind(ctx context.Context, ref rbacv1.RoleRef, namespace string) bool {
	resources := map[string]string{"ClusterRole": "clusterroles", "Role": "roles"}
	if resources[ref.Kind] == "" || ref.APIGroup != rbacv1.GroupName {
		return false
	}
	return k.may(ctx, authorizer.AttributesRecord{Verb: "bind", Resource: resources[ref.Kind], Name: ref.Name, Namespace: namespace})
}

func (k *Kinds) may(ctx context.Context, a authorizer.AttributesRecord) bool {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	a.User, a.APIGroup, a.APIVersion, a.ResourceRequest = u, rbacv1.GroupName, "*", true
	decision, _, err := k.grants().Authorize(ctx, a)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Asking whether roles may be granted", "user", u.GetName(), "verb", a.Verb, "resource", a.Resource, "name", a.Name)
	}
	return decision == authorizer.DecisionAllow
}

// confirmHeld returns an error that lists those of the rules that the user of the context does not hold in the namespace of the request.
func (k *Kinds) confirmHeld(ctx context.Context, rules []rbacv1.PolicyRule) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return errors.New("no user on context")
	}
	namespace, _ := request.NamespaceFrom(ctx)
	held, err := k.grants().Rules(u, namespace)
	covered, missing := validation.Covers(held, rules)
	if covered {
		return nil
	}
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", u.GetName(), u.GetGroups(), describe(missing))
	if err != nil {
		message += fmt.Sprintf("; resolution errors: %v", []error{err})
	}
	return errors.New(message)
}

// describe lists rules, one in a line, those for the same objects as one.
func describe(rules []rbacv1.PolicyRule) string {
	var merged []rbacv1.PolicyRule
	for _, rule := range rules {
		i := slices.IndexFunc(merged, func(m rbacv1.PolicyRule) bool { return sameObjects(&m, &rule) })
		if i < 0 {
			rule.Verbs = slices.Clone(rule.Verbs)
			merged = append(merged, rule)
			continue
		}
		merged[i].Verbs = append(merged[i].Verbs, rule.Verbs...)
	}
	var lines []string
	for i := range merged {
		lines = append(lines, text(&merged[i]))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

func sameObjects(a, b *rbacv1.PolicyRule) bool {
	return len(a.NonResourceURLs) == 0 && len(b.NonResourceURLs) == 0 && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames)
}

func text(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs}, {"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(part.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
