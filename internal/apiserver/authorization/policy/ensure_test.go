package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// world is an API, and what is cached of it.
type world struct {
	t       testing.TB
	client  *fake.Clientset
	created atomic.Int32
}

func newWorld(t testing.TB, objects ...runtime.Object) *world {
	return &world{t: t, client: fake.NewClientset(objects...)}
}

func (w *world) create(ctx context.Context, obj runtime.Object) error {
	w.created.Add(1)
	var err error
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		_, err = w.client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = w.client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.Role:
		_, err = w.client.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.RoleBinding:
		_, err = w.client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	default:
		err = errors.New("unexpected")
	}
	return err
}

// cached is what the cache has when it has seen everything.
func (w *world) cached() Stored {
	ctx, cancel := context.WithCancel(w.t.Context())
	factory := informers.NewSharedInformerFactory(w.client, 0)
	roles := factory.Rbac().V1()
	stored := Stored{
		ClusterRoles: roles.ClusterRoles().Lister(), ClusterRoleBindings: roles.ClusterRoleBindings().Lister(),
		Roles: roles.Roles().Lister(), RoleBindings: roles.RoleBindings().Lister(),
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	cancel()
	factory.Shutdown()
	return stored
}

// ensure returns what was written: the names of changes, and how much was created.
func (w *world) ensure(stored Stored) (changes []string, created int) {
	w.t.Helper()
	w.client.ClearActions()
	w.created.Store(0)
	must(w.t, defaults(w.t).Ensure(w.t.Context(), w.client, w.create, stored))
	for _, a := range w.client.Actions() {
		if verb := a.GetVerb(); verb == "update" || verb == "delete" || verb == "patch" {
			changes = append(changes, verb+" "+a.GetResource().Resource)
		}
	}
	slices.Sort(changes)
	return changes, int(w.created.Load())
}

func TestEnsure(t *testing.T) {
	w := newWorld(t)
	empty := w.cached()
	roles, bindings := defaults(t).Names()
	if changes, created := w.ensure(empty); len(changes) > 0 || created != len(roles)+len(bindings) {
		t.Fatalf("at the first start: %v, %d created", changes, created)
	}
	if _, err := w.client.CoreV1().Namespaces().Get(t.Context(), "kube-public", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	stored := w.cached()
	if changes, created := w.ensure(stored); len(changes)+created+len(w.client.Actions()) > 0 {
		t.Errorf("at the second start: %v, %d created, %v", changes, created, w.client.Actions())
	}
	// Another server was faster than this one's cache.
	if changes, _ := w.ensure(empty); len(changes) > 0 {
		t.Errorf("with an old cache: %v", changes)
	}
}

// TestRepair: what is missing comes back, what was added stays, and what is annotated so is left alone.
func TestRepair(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t)
	w.ensure(w.cached())
	roles, bindings := w.client.RbacV1().ClusterRoles(), w.client.RbacV1().ClusterRoleBindings()
	change := func(name string, f func(*rbacv1.ClusterRole)) {
		r, err := roles.Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		f(r)
		_, err = roles.Update(ctx, r, metav1.UpdateOptions{})
		must(t, err)
	}
	added := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"x"}, Resources: []string{"y"}}
	change("system:node-proxier", func(r *rbacv1.ClusterRole) { r.Rules = append(r.Rules[1:], added) })
	change("system:kube-dns", func(r *rbacv1.ClusterRole) { r.Rules = append(r.Rules, added) })
	change("system:monitoring", func(r *rbacv1.ClusterRole) { r.Labels = nil })
	change("system:basic-user", func(r *rbacv1.ClusterRole) {
		r.Rules, r.Annotations = nil, map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}
	})
	change("view", func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{added} })
	must(t, roles.Delete(ctx, "system:heapster", metav1.DeleteOptions{}))
	must(t, bindings.Delete(ctx, "system:discovery", metav1.DeleteOptions{}))
	_, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system:discovery"}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}, metav1.CreateOptions{})
	must(t, err)

	changes, created := w.ensure(w.cached())
	want := "delete clusterrolebindings, update clusterroles, update clusterroles"
	if got := strings.Join(changes, ", "); got != want || created != 1 {
		t.Errorf("%s, %d created; want %s, 1", got, created, want)
	}
	get := func(name string) *rbacv1.ClusterRole {
		r, err := roles.Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		return r
	}
	proxier := get("system:node-proxier")
	if n := len(defaults(t).ClusterRole("system:node-proxier").Rules) + 1; len(proxier.Rules) < n || !slices.ContainsFunc(proxier.Rules, func(r rbacv1.PolicyRule) bool { return sameRule(r, added) }) {
		t.Errorf("node-proxier: %+v", proxier.Rules)
	}
	if r := get("system:basic-user"); len(r.Rules) > 0 {
		t.Errorf("basic-user: %+v", r.Rules)
	}
	if r := get("view"); len(r.Rules) != 1 {
		t.Errorf("the rules of an aggregated role were written: %+v", r.Rules)
	}
	b, err := bindings.Get(ctx, "system:discovery", metav1.GetOptions{})
	must(t, err)
	if b.RoleRef.Name != "system:discovery" {
		t.Errorf("binding: %+v", b)
	}
	if changes, created := w.ensure(w.cached()); len(changes)+created > 0 {
		t.Errorf("once more: %v, %d created", changes, created)
	}
}

func TestErrorsNameTheObject(t *testing.T) {
	w := newWorld(t)
	fails := func(_ context.Context, obj runtime.Object) error {
		if r, ok := obj.(*rbacv1.ClusterRole); ok && r.Name == "edit" {
			return apierrors.NewInternalError(errors.New("the disk is full"))
		}
		return nil
	}
	err := defaults(t).Ensure(t.Context(), w.client, fails, w.cached())
	if err == nil || !strings.Contains(err.Error(), "edit") || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
}
