package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Watch keeps the index as the informers of the factory see the API. What it returns tell when their first lists are in the index.
func (x *Index) Watch(factory informers.SharedInformerFactory) ([]cache.DoneChecker, error) {
	rbac := factory.Rbac().V1()
	var synced []cache.DoneChecker
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{rbac.ClusterRoles().Informer(), handler(
			func(r *rbacv1.ClusterRole) { x.SetRole("", r.Name, r.Rules) },
			func(r *rbacv1.ClusterRole) { x.DeleteRole("", r.Name) })},
		{rbac.Roles().Informer(), handler(
			func(r *rbacv1.Role) { x.SetRole(r.Namespace, r.Name, r.Rules) },
			func(r *rbacv1.Role) { x.DeleteRole(r.Namespace, r.Name) })},
		{rbac.ClusterRoleBindings().Informer(), handler(
			func(b *rbacv1.ClusterRoleBinding) { x.SetBinding("", b.Name, b.RoleRef, b.Subjects) },
			func(b *rbacv1.ClusterRoleBinding) { x.DeleteBinding("", b.Name) })},
		{rbac.RoleBindings().Informer(), handler(
			func(b *rbacv1.RoleBinding) { x.SetBinding(b.Namespace, b.Name, b.RoleRef, b.Subjects) },
			func(b *rbacv1.RoleBinding) { x.DeleteBinding(b.Namespace, b.Name) })},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSyncedChecker())
	}
	return synced, nil
}

// handler calls set for what is and remove for what is no more.
func handler[T any](set, remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { set(obj.(T)) },
		UpdateFunc: func(_, obj any) { set(obj.(T)) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			remove(obj.(T))
		},
	}
}

// Await returns when the index knows the roles and bindings of the given names.
func (x *Index) Await(ctx context.Context, roles, bindings []types.NamespacedName) error {
	for {
		changed, complete := x.knows(roles, bindings)
		if complete {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// knows reports whether all are there, and if not, gives a channel that is closed at the next change.
func (x *Index) knows(roles, bindings []types.NamespacedName) (<-chan struct{}, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	complete := true
	for _, name := range roles {
		r := x.roles[key{name.Namespace, name.Name}]
		complete = complete && r != nil && r.found
	}
	for _, name := range bindings {
		_, ok := x.bound[key{name.Namespace, name.Name}]
		complete = complete && ok
	}
	if !complete && x.changed == nil {
		x.changed = make(chan struct{})
	}
	return x.changed, complete
}

// tell wakes those who wait for a change.
func (x *Index) tell() {
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
}
