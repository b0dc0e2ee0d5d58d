package resource

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyForCollection(t *testing.T) {
	old := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}
	for name, c := range map[string]struct {
		change func(*rbacv1.Role)
		want   bool
	}{
		"finalizers": {func(r *rbacv1.Role) { r.Finalizers = []string{"a/b"} }, true},
		"owners":     {func(r *rbacv1.Role) { r.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, true},
		"labels":     {func(r *rbacv1.Role) { r.Labels = map[string]string{"a": "b"} }, false},
		"rules":      {func(r *rbacv1.Role) { r.Rules = nil }, false},
	} {
		changed := old.DeepCopy()
		c.change(changed)
		if got := OnlyForCollection(changed, old); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
