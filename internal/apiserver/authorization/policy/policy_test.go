package policy

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func defaults(t testing.TB) *Policy {
	t.Helper()
	p, err := Default()
	must(t, err)
	return p
}

// TestBindingsFindTheirRoles: names are there once, and a binding's role is there.
func TestBindingsFindTheirRoles(t *testing.T) {
	p := defaults(t)
	roles, bindings := p.Names()
	for _, list := range [][]string{names(roles), names(bindings)} {
		slices.Sort(list)
		if n := len(list); len(slices.Compact(list)) != n {
			t.Error("a name is there twice")
		}
	}
	have := names(roles)
	for _, b := range p.ClusterRoleBindings {
		if !slices.Contains(have, "/"+b.RoleRef.Name) || b.RoleRef.Kind != "ClusterRole" {
			t.Errorf("ClusterRoleBinding %s: no %s %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
	for _, b := range p.RoleBindings {
		if !slices.Contains(have, b.Namespace+"/"+b.RoleRef.Name) {
			t.Errorf("RoleBinding %s: no %s %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
}

func names[T interface{ String() string }](of []T) []string {
	var out []string
	for _, n := range of {
		out = append(out, n.String())
	}
	return out
}

// TestControllers: the one user as whom all controllers run holds what their roles allow, and nothing beyond.
func TestControllers(t *testing.T) {
	p := defaults(t)
	var roles []rbacv1.PolicyRule
	for _, r := range p.ClusterRoles {
		if strings.HasPrefix(r.Name, controllerPrefix) {
			roles = append(roles, r.Rules...)
		}
	}
	ours := p.ClusterRole("bayplan:controllers").Rules
	if ok, missing := validation.Covers(ours, roles); !ok {
		t.Errorf("the controllers lack %v", missing)
	}
	if ok, extra := validation.Covers(roles, ours); !ok {
		t.Errorf("the controllers hold beyond their roles %v", extra)
	}
}

// TestAggregation: admin holds what edit does, and edit what view does; none of them what is for the cluster's administrator.
func TestAggregation(t *testing.T) {
	p := defaults(t)
	rules := func(name string) []rbacv1.PolicyRule { return p.ClusterRole(name).Rules }
	for _, pair := range [][2]string{{"edit", "view"}, {"admin", "edit"}, {"edit", "system:aggregate-to-edit"}, {"admin", "system:aggregate-to-admin"}, {"view", "system:aggregate-to-view"}} {
		if ok, missing := validation.Covers(rules(pair[0]), rules(pair[1])); !ok || len(rules(pair[1])) == 0 {
			t.Errorf("%s lacks of %s: %v", pair[0], pair[1], missing)
		}
	}
	for name, forbidden := range map[string]rbacv1.PolicyRule{
		"view":  {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
		"edit":  {Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}},
		"admin": {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
	} {
		if ok, _ := validation.Covers(rules(name), []rbacv1.PolicyRule{forbidden}); ok {
			t.Errorf("%s holds %v", name, forbidden)
		}
	}
}

func TestReadRefusesNonsense(t *testing.T) {
	for text, want := range map[string]string{
		"\tget core: pods\n":                         "line 1: a rule without a role",
		"# comment\n\nclusterrole a\n\tget\n":        "line 4: \"get\" is no rule",
		"clusterrole a\n\tget core:\n":               "names no resource",
		"clusterrole a what=b\n":                     "is no option of a role",
		"cluster a\n":                                "is no fact",
		"role ns\n":                                  "is no fact",
		"bind a to nobody\n":                         "\"nobody\" is no subject",
		"bind a to user:\n":                          "names nobody",
		"bind a b to user:u\n":                       "is no binding",
		"rolebind ns n = clusterrol a to user:u\n":   "is no binding",
		"rolebind ns n = role a to group\n":          "names nobody",
		"bind a to user:u\n\tget core: pods\n":       "line 2: a rule without a role",
		"clusterrole a\n\tget core: pods nodes = \n": "",
	} {
		err := (&Policy{}).read(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	p := &Policy{}
	must(t, p.read("clusterrole a into=b\n\tread,update core,apps: z y = n2 n1\n\tget /b /a\nbind x = a to user:u:v group:g serviceaccount:ns/s\nrolebind ns y = clusterrole a to\n"))
	r := p.ClusterRole("a")
	want := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "update", "watch"}, APIGroups: []string{"", "apps"}, Resources: []string{"y", "z"}, ResourceNames: []string{"n1", "n2"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/a", "/b"}},
	}
	if !slices.EqualFunc(r.Rules, want, sameRule) || r.Labels["rbac.authorization.k8s.io/aggregate-to-b"] != "true" || r.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" {
		t.Errorf("role: %+v", r)
	}
	b := p.ClusterRoleBindings[0]
	if b.Name != "x" || b.RoleRef.Name != "a" || len(b.Subjects) != 3 || b.Subjects[0].Name != "u:v" || b.Subjects[2].Namespace != "ns" || b.Subjects[2].APIGroup != "" {
		t.Errorf("binding: %+v", b)
	}
	if n := p.RoleBindings[0]; n.Namespace != "ns" || n.RoleRef.Kind != "ClusterRole" || len(n.Subjects) != 0 {
		t.Errorf("role binding: %+v", n)
	}
}

func BenchmarkDefault(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Default(); err != nil {
			b.Fatal(err)
		}
	}
}
