package rbac

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"pgregory.net/rapid"
)

// model keeps roles and bindings as they are, and decides by looking through all of them, as RBAC is described.
type model struct {
	roles    map[key][]rbacv1.PolicyRule
	bindings map[key]modelBinding
}

type modelBinding struct {
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func (m *model) allows(u user.Info, a authorizer.Attributes) bool {
	for at, b := range m.bindings {
		if at.namespace != "" && at.namespace != a.GetNamespace() {
			continue
		}
		role := key{name: b.ref.Name}
		if b.ref.Kind == "Role" {
			role.namespace = at.namespace
		}
		if slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return is(u, s, at.namespace) }) && AnyAllows(m.roles[role], a) {
			return true
		}
	}
	return false
}

func is(u user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == u.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(u.GetGroups(), s.Name)
	}
	if s.Namespace != "" {
		namespace = s.Namespace
	}
	return namespace != "" && u.GetName() == "system:serviceaccount:"+namespace+":"+s.Name
}

var (
	someNamespace = rapid.SampledFrom([]string{"", "n1", "n2"})
	someName      = rapid.SampledFrom([]string{"a", "b", "c"})
	someVerb      = rapid.SampledFrom([]string{"get", "list", "*"})
	someResource  = rapid.SampledFrom([]string{"pods", "pods/log", "secrets", "*/log", "*"})
	someSubject   = rapid.Custom(func(t *rapid.T) rbacv1.Subject {
		s := rbacv1.Subject{Kind: rapid.SampledFrom([]string{"User", "Group", "ServiceAccount"}).Draw(t, "kind"), Name: someName.Draw(t, "subject")}
		if s.Kind == rbacv1.ServiceAccountKind {
			s.Namespace = someNamespace.Draw(t, "its namespace")
		}
		return s
	})
	someRule = rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: []string{someVerb.Draw(t, "verb")}, APIGroups: []string{""}, Resources: rapid.SliceOfN(someResource, 1, 2).Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(someName, 0, 1).Draw(t, "names"),
		}
	})
)

// TestIndexEqualsModel: after any changes the index decides as one does who looks at everything.
func TestIndexEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex()
		m := &model{roles: map[key][]rbacv1.PolicyRule{}, bindings: map[key]modelBinding{}}
		t.Repeat(map[string]func(*rapid.T){
			"set role": func(t *rapid.T) {
				at := key{someNamespace.Draw(t, "namespace"), someName.Draw(t, "name")}
				m.roles[at] = rapid.SliceOfN(someRule, 0, 2).Draw(t, "rules")
				x.SetRole(at.namespace, at.name, m.roles[at])
			},
			"delete role": func(t *rapid.T) {
				at := key{someNamespace.Draw(t, "namespace"), someName.Draw(t, "name")}
				delete(m.roles, at)
				x.DeleteRole(at.namespace, at.name)
			},
			"set binding": func(t *rapid.T) {
				at := key{someNamespace.Draw(t, "namespace"), someName.Draw(t, "name")}
				kinds := []string{"ClusterRole"}
				if at.namespace != "" {
					kinds = append(kinds, "Role")
				}
				b := modelBinding{ref(rapid.SampledFrom(kinds).Draw(t, "kind"), someName.Draw(t, "role")), rapid.SliceOfN(someSubject, 0, 3).Draw(t, "subjects")}
				m.bindings[at] = b
				x.SetBinding(at.namespace, at.name, b.ref, b.subjects)
			},
			"delete binding": func(t *rapid.T) {
				at := key{someNamespace.Draw(t, "namespace"), someName.Draw(t, "name")}
				delete(m.bindings, at)
				x.DeleteBinding(at.namespace, at.name)
			},
			"": func(t *rapid.T) { compare(t, x, m) },
		})
	})
}

func compare(t *rapid.T, x *Index, m *model) {
	for _, name := range []string{"a", "b", "system:serviceaccount:n1:a", "system:serviceaccount:n2:b"} {
		u := &user.DefaultInfo{Name: name, Groups: []string{"b", "c"}}
		for _, namespace := range []string{"", "n1", "n2"} {
			for _, sub := range []string{"", "log"} {
				a := authorizer.AttributesRecord{User: u, Verb: "get", Resource: "pods", Subresource: sub, Namespace: namespace, Name: "a", ResourceRequest: true}
				decision, _, err := x.Authorize(context.Background(), a)
				if got, want := decision == authorizer.DecisionAllow, m.allows(u, a); got != want || err != nil {
					t.Fatalf("%s: %v, %v; want %v", fmt.Sprint(name, " ", namespace, " ", sub), got, err, want)
				}
			}
		}
	}
}
