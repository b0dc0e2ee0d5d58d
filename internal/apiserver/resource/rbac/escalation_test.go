package rbac

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// held is who holds what, in a test: rules, and verbs on roles that are allowed ("escalate roles/mine").
type held struct {
	rules []rbacv1.PolicyRule
	err   error
	verbs string
}

func (h held) Rules(user.Info, string) ([]rbacv1.PolicyRule, error) { return h.rules, h.err }

func (h held) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if h.verbs == a.GetVerb()+" "+a.GetResource()+"/"+a.GetName() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func rule(verbs, groups, resources, names string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, ","), Resources: strings.Fields(resources), ResourceNames: strings.Fields(names)}
}

func asking(resource, name string) context.Context {
	ctx := request.WithUser(context.Background(), &user.DefaultInfo{Name: "u", Groups: []string{"g"}})
	ctx = request.WithNamespace(ctx, "ns")
	return request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, APIGroup: rbacv1.GroupName, Resource: resource, Name: name, Namespace: "ns"})
}

func TestRoleIsHeld(t *testing.T) {
	const intro = `roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:` + "\n"
	for name, c := range map[string]struct {
		held held
		role []rbacv1.PolicyRule
		want string
	}{
		"nothing":         {held{}, nil, ""},
		"the same":        {held{rules: []rbacv1.PolicyRule{rule("get", "", "pods", "")}}, []rbacv1.PolicyRule{rule("get", "", "pods", "")}, ""},
		"of two rules":    {held{rules: []rbacv1.PolicyRule{rule("get", "", "pods", ""), rule("list", "", "pods", "")}}, []rbacv1.PolicyRule{rule("get list", "", "pods", "")}, ""},
		"one of all":      {held{rules: everything}, []rbacv1.PolicyRule{rule("get", "x", "y/z", "n")}, ""},
		"one name":        {held{rules: []rbacv1.PolicyRule{rule("get", "", "pods", "")}}, []rbacv1.PolicyRule{rule("get", "", "pods", "p")}, ""},
		"all names":       {held{rules: []rbacv1.PolicyRule{rule("get", "", "pods", "p")}}, []rbacv1.PolicyRule{rule("get", "", "pods", "")}, `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		"a sub-resource":  {held{rules: []rbacv1.PolicyRule{rule("get", "", "pods", "")}}, []rbacv1.PolicyRule{rule("get", "", "pods/log", "")}, `{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}`},
		"verbs together":  {held{}, []rbacv1.PolicyRule{rule("get list", "", "pods", "")}, `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`},
		"names are shown": {held{}, []rbacv1.PolicyRule{rule("get", "", "pods", "p")}, `{APIGroups:[""], Resources:["pods"], ResourceNames:["p"], Verbs:["get"]}`},
		"several": {held{rules: []rbacv1.PolicyRule{rule("get", "apps", "deployments", "")}}, []rbacv1.PolicyRule{rule("get", "apps,x", "deployments", ""), {Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}},
			`{APIGroups:["x"], Resources:["deployments"], Verbs:["get"]}` + "\n" + `{NonResourceURLs:["/x"], Verbs:["get"]}`},
		"not all is known": {held{err: errors.New("no such role")}, []rbacv1.PolicyRule{rule("get", "", "pods", "")}, `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; resolution errors: [no such role]`},
		"may escalate":     {held{verbs: "escalate roles/r"}, []rbacv1.PolicyRule{rule("*", "*", "*", "")}, ""},
		"another":          {held{verbs: "escalate roles/other"}, []rbacv1.PolicyRule{rule("get", "", "pods", "")}, `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
	} {
		k := New(func() Grants { return c.held })
		want := c.want
		if want != "" {
			want = intro + want
		}
		got := ""
		if err := k.checkRole(asking("roles", "r"), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: c.role}, nil); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q\nwant %q", name, got, want)
		}
	}
}

// TestGathering: to let a role gather rules, and to change one that does, one must hold everything.
func TestGathering(t *testing.T) {
	gathering := &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}}
	plain := &rbacv1.ClusterRole{}
	for name, c := range map[string]struct {
		obj, old *rbacv1.ClusterRole
		held     held
		refused  bool
	}{
		"new":                {gathering, nil, held{}, true},
		"by who holds all":   {gathering, nil, held{rules: everything}, false},
		"by who escalates":   {gathering, nil, held{verbs: "escalate clusterroles/r"}, false},
		"no more":            {plain, gathering, held{}, true},
		"never":              {plain, plain, held{}, false},
		"without a selector": {&rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}, plain, held{}, false},
	} {
		k := New(func() Grants { return c.held })
		err := k.checkRole(asking("clusterroles", "r"), c.obj, c.old)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "must have cluster-admin privileges") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBindVerb(t *testing.T) {
	k := New(func() Grants { return held{verbs: "bind clusterroles/strong"} })
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "strong"}
	if err := k.checkBinding(asking("rolebindings", ""), &rbacv1.RoleBinding{RoleRef: ref}, nil); err != nil {
		t.Error(err)
	}
	if err := k.checkBinding(asking("clusterrolebindings", ""), &rbacv1.ClusterRoleBinding{RoleRef: ref}, nil); err != nil {
		t.Error(err)
	}
	ref.Kind = "Strange"
	if err := k.checkBinding(asking("rolebindings", ""), &rbacv1.RoleBinding{RoleRef: ref}, nil); err == nil || !strings.Contains(err.Error(), "unsupported role reference") {
		t.Errorf("a strange reference: %v", err)
	}
}
