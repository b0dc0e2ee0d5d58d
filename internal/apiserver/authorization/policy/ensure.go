package policy

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

// writers is how many objects are written at a time: enough for the store to put several into one transaction.
const writers = 64

// Stored lists what is stored.
type Stored struct {
	ClusterRoles        rbaclisters.ClusterRoleLister
	ClusterRoleBindings rbaclisters.ClusterRoleBindingLister
	Roles               rbaclisters.RoleLister
	RoleBindings        rbaclisters.RoleBindingLister
}

// Names are the names of all roles, and of all bindings.
func (p *Policy) Names() (roles, bindings []types.NamespacedName) {
	for _, r := range p.ClusterRoles {
		roles = append(roles, types.NamespacedName{Name: r.Name})
	}
	for _, r := range p.Roles {
		roles = append(roles, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	}
	for _, b := range p.ClusterRoleBindings {
		bindings = append(bindings, types.NamespacedName{Name: b.Name})
	}
	for _, b := range p.RoleBindings {
		bindings = append(bindings, types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
	}
	return roles, bindings
}

// Create stores an object that is not there.
type Create func(ctx context.Context, obj runtime.Object) error

// Ensure makes what is not stored, and adds what the stored objects lack. It takes nothing away, except a binding to another role, and leaves alone what an
// administrator has annotated with rbac.authorization.kubernetes.io/autoupdate=false. Where nothing is missing nothing is asked of the API.
func (p *Policy) Ensure(ctx context.Context, client kubernetes.Interface, create Create, stored Stored) error {
	if err := p.ensureNamespaces(ctx, client, stored); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	api := client.RbacV1()
	clusterRoles := reconciliation.ClusterRoleModifier{Client: api.ClusterRoles()}
	roles := reconciliation.RoleModifier{Client: api, NamespaceClient: client.CoreV1().Namespaces()}
	clusterBindings := reconciliation.ClusterRoleBindingClientAdapter{Client: api.ClusterRoleBindings()}
	bindings := reconciliation.RoleBindingClientAdapter{Client: api, NamespaceClient: client.CoreV1().Namespaces()}
	for _, r := range p.ClusterRoles {
		group.Go(func() error {
			return ensureRole(ctx, reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, clusterRoles, create, stored.clusterRole)
		})
	}
	for _, b := range p.ClusterRoleBindings {
		group.Go(func() error {
			return ensureBinding(ctx, reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}, clusterBindings, create, stored.clusterRoleBinding)
		})
	}
	for _, r := range p.Roles {
		group.Go(func() error {
			return ensureRole(ctx, reconciliation.RoleRuleOwner{Role: r}, roles, create, stored.role)
		})
	}
	for _, b := range p.RoleBindings {
		group.Go(func() error {
			return ensureBinding(ctx, reconciliation.RoleBindingAdapter{RoleBinding: b}, bindings, create, stored.roleBinding)
		})
	}
	return group.Wait()
}

// ensureNamespaces makes the namespaces of those objects that are not there: they are stored without asking whether these exist.
func (p *Policy) ensureNamespaces(ctx context.Context, client kubernetes.Interface, stored Stored) error {
	missing := sets.New[string]()
	for _, r := range p.Roles {
		if _, err := stored.role(r.Namespace, r.Name); err != nil {
			missing.Insert(r.Namespace)
		}
	}
	for _, b := range p.RoleBindings {
		if _, err := stored.roleBinding(b.Namespace, b.Name); err != nil {
			missing.Insert(b.Namespace)
		}
	}
	for _, name := range sets.List(missing) {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("default policy: namespace %s: %w", name, err)
		}
	}
	return nil
}

func ensureRole(ctx context.Context, want reconciliation.RuleOwner, api reconciliation.RuleOwnerModifier, create Create, stored roleGetter) error {
	if have, err := stored(want.GetNamespace(), want.GetName()); err == nil && same(have, want) {
		return nil
	}
	return ensure(ctx, want, create, func(confirm bool) (reconciliation.ReconcileOperation, bool, error) {
		options := reconciliation.ReconcileRoleOptions{Role: forUpdate(want), Client: cachedRoles{api, stored}}
		if confirm {
			options.Confirm, options.Client = true, api
		}
		result, err := options.Run()
		if err != nil {
			return "", false, err
		}
		return result.Operation, result.Protected, nil
	})
}

// wanted is a role or a binding.
type wanted interface {
	GetObject() runtime.Object
	GetNamespace() string
	GetName() string
}

// reconcile compares an object with the cached one, and tells what is to be done; with confirm it does it, to the one in the store.
type reconcile func(confirm bool) (operation reconciliation.ReconcileOperation, protected bool, err error)

func ensure(ctx context.Context, want wanted, create Create, run reconcile) error {
	err := retry.OnError(retry.DefaultBackoff, passes, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		// What the cache says is enough to see that nothing is to be done, or that the object is not there.
		operation, protected, err := run(false)
		switch {
		case err != nil:
			return err
		case operation == reconciliation.ReconcileNone || protected:
			return nil
		case operation == reconciliation.ReconcileCreate:
			if err = create(ctx, want.GetObject()); !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		_, _, err = run(true)
		return err
	})
	return described(err, want.GetObject(), want.GetNamespace(), want.GetName())
}

// same tells at once what a comparison of single permissions would say after a longer time, in the usual case.
func same(have, want reconciliation.RuleOwner) bool {
	return contains(have.GetLabels(), want.GetLabels()) && contains(have.GetAnnotations(), want.GetAnnotations()) &&
		equality.Semantic.DeepEqual(have.GetAggregationRule(), want.GetAggregationRule()) &&
		(want.GetAggregationRule() != nil || slices.EqualFunc(have.GetRules(), want.GetRules(), sameRule))
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// forUpdate is the role as a stored one is compared with: the rules of a role that gathers them are its controller's business.
func forUpdate(want reconciliation.RuleOwner) reconciliation.RuleOwner {
	if want.GetAggregationRule() == nil {
		return want
	}
	want = want.DeepCopyRuleOwner()
	want.SetRules(nil)
	return want
}

func ensureBinding(ctx context.Context, want reconciliation.RoleBinding, api reconciliation.RoleBindingModifier, create Create, stored bindingGetter) error {
	return ensure(ctx, want, create, func(confirm bool) (reconciliation.ReconcileOperation, bool, error) {
		options := reconciliation.ReconcileRoleBindingOptions{RoleBinding: want, Client: cachedBindings{api, stored}}
		if confirm {
			options.Confirm, options.Client = true, api
		}
		result, err := options.Run()
		if err != nil {
			return "", false, err
		}
		return result.Operation, result.Protected, nil
	})
}

// passes: such an error is over when it is tried again.
func passes(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

func described(err error, obj any, namespace, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("default policy: %T %s: %w", obj, types.NamespacedName{Namespace: namespace, Name: name}, err)
}

type (
	roleGetter    func(namespace, name string) (reconciliation.RuleOwner, error)
	bindingGetter func(namespace, name string) (reconciliation.RoleBinding, error)
)

// cachedRoles reads from the cache.
type cachedRoles struct {
	reconciliation.RuleOwnerModifier
	get roleGetter
}

// Get implements reconciliation.RuleOwnerModifier.
func (c cachedRoles) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	return c.get(namespace, name)
}

type cachedBindings struct {
	reconciliation.RoleBindingModifier
	get bindingGetter
}

// Get implements reconciliation.RoleBindingModifier.
func (c cachedBindings) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	return c.get(namespace, name)
}

func (s Stored) clusterRole(_, name string) (reconciliation.RuleOwner, error) {
	r, err := s.ClusterRoles.Get(name)
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, err
}

func (s Stored) role(namespace, name string) (reconciliation.RuleOwner, error) {
	r, err := s.Roles.Roles(namespace).Get(name)
	return reconciliation.RoleRuleOwner{Role: r}, err
}

func (s Stored) clusterRoleBinding(_, name string) (reconciliation.RoleBinding, error) {
	b, err := s.ClusterRoleBindings.Get(name)
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}, err
}

func (s Stored) roleBinding(namespace, name string) (reconciliation.RoleBinding, error) {
	b, err := s.RoleBindings.RoleBindings(namespace).Get(name)
	return reconciliation.RoleBindingAdapter{RoleBinding: b}, err
}
