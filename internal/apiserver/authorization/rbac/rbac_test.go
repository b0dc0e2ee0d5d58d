package rbac

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func ref(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func rule(verbs, group, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: strings.Fields(resources), ResourceNames: names}
}

func asUser(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }
func asGroup(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
func asAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func ask(x *Index, u user.Info, verb, resource, namespace string) (bool, string) {
	resource, sub, _ := strings.Cut(resource, "/")
	decision, reason, _ := x.Authorize(context.Background(), authorizer.AttributesRecord{
		User: u, Verb: verb, Resource: resource, Subresource: sub, Namespace: namespace, ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow, reason
}

func sample() *Index {
	x := NewIndex()
	x.SetBinding("", "readers", ref("ClusterRole", "reader"), []rbacv1.Subject{asGroup("people"), asUser("eve")})
	x.SetRole("", "reader", []rbacv1.PolicyRule{rule("get list", "", "pods")})
	x.SetRole("ns", "writer", []rbacv1.PolicyRule{rule("create", "", "pods")})
	x.SetBinding("ns", "writers", ref("Role", "writer"), []rbacv1.Subject{asUser("ann"), asAccount("", "robot"), asAccount("other", "robot")})
	x.SetBinding("ns", "local-readers", ref("ClusterRole", "reader"), []rbacv1.Subject{asUser("bob")})
	x.SetBinding("ns", "broken", ref("Role", "none"), []rbacv1.Subject{asUser("bob")})
	x.SetBinding("", "broken", ref("ClusterRole", "none"), []rbacv1.Subject{asUser("bob")})
	x.SetBinding("", "not-here", ref("Role", "writer"), []rbacv1.Subject{asUser("zoe")})
	return x
}

func TestAuthorize(t *testing.T) {
	x := sample()
	for _, c := range []struct {
		user                      *user.DefaultInfo
		verb, resource, namespace string
		want                      bool
		reason                    string
	}{
		{&user.DefaultInfo{Name: "a", Groups: []string{"people"}}, "get", "pods", "any", true, `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "people"`},
		{&user.DefaultInfo{Name: "people"}, "get", "pods", "any", false, ""},
		{&user.DefaultInfo{Name: "eve"}, "list", "pods", "", true, `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "eve"`},
		{&user.DefaultInfo{Name: "a", Groups: []string{"eve"}}, "list", "pods", "", false, ""},
		{&user.DefaultInfo{Name: "ann"}, "create", "pods", "ns", true, `RBAC: allowed by RoleBinding "writers/ns" of Role "writer" to User "ann"`},
		{&user.DefaultInfo{Name: "ann"}, "create", "pods", "other", false, ""},
		{&user.DefaultInfo{Name: "ann"}, "create", "pods", "", false, ""},
		{&user.DefaultInfo{Name: "system:serviceaccount:ns:robot"}, "create", "pods", "ns", true, `RBAC: allowed by RoleBinding "writers/ns" of Role "writer" to ServiceAccount "robot/ns"`},
		{&user.DefaultInfo{Name: "system:serviceaccount:other:robot"}, "create", "pods", "ns", true, `RBAC: allowed by RoleBinding "writers/ns" of Role "writer" to ServiceAccount "robot/other"`},
		{&user.DefaultInfo{Name: "system:serviceaccount:third:robot"}, "create", "pods", "ns", false, ""},
		{&user.DefaultInfo{Name: "bob"}, "get", "pods", "ns", true, `RBAC: allowed by RoleBinding "local-readers/ns" of ClusterRole "reader" to User "bob"`},
		{&user.DefaultInfo{Name: "bob"}, "get", "pods", "other", false, `RBAC: clusterrole.rbac.authorization.k8s.io "none" not found`},
		{&user.DefaultInfo{Name: "bob"}, "create", "pods", "ns", false, `RBAC: [clusterrole.rbac.authorization.k8s.io "none" not found, role.rbac.authorization.k8s.io "none" not found]`},
		{&user.DefaultInfo{Name: "zoe"}, "create", "pods", "ns", false, ""},
	} {
		if got, reason := ask(x, c.user, c.verb, c.resource, c.namespace); got != c.want || reason != c.reason {
			t.Errorf("%s %s %s in %q: %v, %s; want %v, %s", c.user.Name, c.verb, c.resource, c.namespace, got, reason, c.want, c.reason)
		}
	}
	if decision, _, _ := x.Authorize(context.Background(), authorizer.AttributesRecord{}); decision != authorizer.DecisionNoOpinion {
		t.Error("nobody is allowed something")
	}
}

// TestChanges: what is taken away counts no more, in whichever order it is heard of.
func TestChanges(t *testing.T) {
	x := sample()
	eve, ann, bob := &user.DefaultInfo{Name: "eve"}, &user.DefaultInfo{Name: "ann"}, &user.DefaultInfo{Name: "bob"}
	may := func(u user.Info, verb, namespace string) bool {
		ok, _ := ask(x, u, verb, "pods", namespace)
		return ok
	}
	x.SetBinding("", "readers", ref("ClusterRole", "reader"), []rbacv1.Subject{asGroup("people")})
	if may(eve, "get", "") || !may(bob, "get", "ns") {
		t.Error("a subject that was taken out still reads, or another no more")
	}
	x.DeleteRole("", "reader")
	if may(bob, "get", "ns") {
		t.Error("the role is gone and grants")
	}
	x.SetRole("", "reader", []rbacv1.PolicyRule{rule("watch", "", "pods")})
	if may(bob, "get", "ns") || !may(bob, "watch", "ns") {
		t.Error("the role that came again does not count")
	}
	x.SetRole("", "none", []rbacv1.PolicyRule{rule("get", "", "pods")})
	if !may(bob, "get", "other") {
		t.Error("the role that came after its binding does not count")
	}
	x.DeleteBinding("ns", "writers")
	if may(ann, "create", "ns") {
		t.Error("the binding is gone and grants")
	}
	for name := range x.bound {
		x.DeleteBinding(name.namespace, name.name)
	}
	for at := range x.roles {
		x.DeleteRole(at.namespace, at.name)
	}
	if len(x.roles)+len(x.bound)+len(x.cluster)+len(x.local) != 0 {
		t.Errorf("something is left of nothing: %+v", x)
	}
}

func TestRules(t *testing.T) {
	x := sample()
	rules, err := x.Rules(&user.DefaultInfo{Name: "bob", Groups: []string{"people"}}, "ns")
	if len(rules) != 2 || err == nil || !strings.Contains(err.Error(), `"none" not found`) {
		t.Errorf("rules: %v, %v", rules, err)
	}
	x.SetRole("", "paths", []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}})
	x.SetBinding("", "paths", ref("ClusterRole", "paths"), []rbacv1.Subject{asUser("eve")})
	resources, paths, incomplete, err := x.RulesFor(context.Background(), &user.DefaultInfo{Name: "eve"}, "ns")
	if len(resources) != 1 || len(paths) != 1 || incomplete || err != nil || paths[0].GetNonResourceURLs()[0] != "/x" {
		t.Errorf("rules for eve: %v, %v, %v, %v", resources, paths, incomplete, err)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		resources []string
		asked     string
		want      bool
	}{
		{[]string{"pods"}, "pods", true}, {[]string{"pods"}, "pods/log", false}, {[]string{"pods/log"}, "pods/log", true}, {[]string{"pods/log"}, "pods", false},
		{[]string{"*"}, "pods/log", true}, {[]string{"*/log"}, "pods/log", true}, {[]string{"*/log"}, "pods", false}, {[]string{"pods/*"}, "pods/log", false},
		{[]string{"od/log"}, "pods/log", false}, {[]string{"xpods/log"}, "pods/log", false}, {[]string{"pods/catalog"}, "pods/log", false}, {[]string{"*/catalog"}, "pods/log", false},
		{[]string{"services", "pods/log"}, "pods/log", true}, {nil, "pods", false},
	} {
		resource, sub, _ := strings.Cut(c.asked, "/")
		r := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: c.resources}
		if got := Allows(&r, authorizer.AttributesRecord{Verb: "get", Resource: resource, Subresource: sub, ResourceRequest: true}); got != c.want {
			t.Errorf("%v for %s: %v, want %v", c.resources, c.asked, got, c.want)
		}
	}
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*", "/x", true}, {"/api", "/api", true}, {"/api", "/api/v1", false}, {"/api/*", "/api/v1", true}, {"/api/*", "/api", false}, {"/a*", "/apis", true}, {"/a**", "/apis", true},
	} {
		r := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{c.pattern}}
		if got := Allows(&r, authorizer.AttributesRecord{Verb: "get", Path: c.path}); got != c.want {
			t.Errorf("%s for %s: %v, want %v", c.pattern, c.path, got, c.want)
		}
		if Allows(&r, authorizer.AttributesRecord{Verb: "post", Path: c.path}) {
			t.Errorf("%s allows post", c.pattern)
		}
	}
	named := []rbacv1.PolicyRule{rule("get", "apps", "deployments", "d")}
	for name, want := range map[string]bool{"d": true, "e": false, "": false} {
		if got := AnyAllows(named, authorizer.AttributesRecord{Verb: "get", APIGroup: "apps", Resource: "deployments", Name: name, ResourceRequest: true}); got != want {
			t.Errorf("named rule for %q: %v", name, got)
		}
	}
}

func TestAwait(t *testing.T) {
	x := NewIndex()
	done := make(chan error, 1)
	go func() {
		done <- x.Await(t.Context(), []types.NamespacedName{{Name: "a"}, {Namespace: "ns", Name: "b"}}, []types.NamespacedName{{Name: "c"}})
	}()
	x.SetBinding("", "c", ref("ClusterRole", "a"), nil)
	x.SetRole("ns", "b", nil)
	x.SetRole("", "a", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// big is an index of n bindings, each of a role of its own to a user and a group of its own, half of them in a hundred namespaces; all users are in the group "everybody", which has 50
// roles.
func big(n int) *Index {
	x := NewIndex()
	rules := func(i int) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{rule("get list watch", "apps", "deployments daemonsets"), rule("get", "", "secrets", fmt.Sprintf("s%d", i)), rule("get list watch", "", "pods pods/log")}
	}
	for i := range n {
		name, namespace := fmt.Sprintf("r%d", i), ""
		kind := "ClusterRole"
		if i%2 == 1 {
			namespace, kind = fmt.Sprintf("ns%d", i%100), "Role"
		}
		x.SetRole(namespace, name, rules(i))
		x.SetBinding(namespace, name, ref(kind, name), []rbacv1.Subject{asUser(fmt.Sprintf("u%d", i)), asGroup(fmt.Sprintf("g%d", i))})
	}
	for i := range 50 {
		name := fmt.Sprintf("common%d", i)
		x.SetRole("", name, []rbacv1.PolicyRule{rule("get", "", fmt.Sprintf("things%d", i))})
		x.SetBinding("", name, ref("ClusterRole", name), []rbacv1.Subject{asGroup("everybody")})
	}
	return x
}

func request(i int, verb, resource string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: fmt.Sprintf("u%d", i), Groups: []string{"everybody", "system:authenticated"}},
		Verb: verb, Resource: resource, Namespace: fmt.Sprintf("ns%d", i%100), ResourceRequest: true,
	}
}

// TestDecisionsDoNotAllocate: neither what is allowed nor what is not.
func TestDecisionsDoNotAllocate(t *testing.T) {
	x := big(200)
	for name, a := range map[string]authorizer.Attributes{"allowed": request(101, "get", "pods"), "not": request(101, "create", "pods")} {
		if n := testing.AllocsPerRun(100, func() { _, _, _ = x.Authorize(context.Background(), a) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAuthorize(b *testing.B) {
	x := big(10000)
	for name, a := range map[string]authorizer.Attributes{"allowed": request(4001, "get", "pods"), "refused": request(4001, "create", "pods")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = x.Authorize(context.Background(), a)
			}
		})
	}
}
