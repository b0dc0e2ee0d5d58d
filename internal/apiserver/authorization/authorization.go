// Package authorization tells who may do what. A request is shown to three authorizers in turn, and allowed by the first that allows it:
//
//	masters   members of system:masters may do everything, and the API server itself is one: it works before roles are known
//	node      nodes, for what is their own (node)
//	rbac      roles and bindings (rbac), of which the default ones are made at start (policy)
//
// Whoever asks what a user may do (SelfSubjectRulesReview, the checks against granting more than one has) asks the same Authorizer.
package authorization

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/apiserver/authorization/node"
	"github.com/bayplan/bayplan/internal/apiserver/authorization/policy"
	"github.com/bayplan/bayplan/internal/apiserver/authorization/rbac"
)

// Names of the cluster's own users and groups, as in every Kubernetes cluster.
const (
	Scheduler         = user.KubeScheduler
	ControllerManager = user.KubeControllerManager
	NodeUserPrefix    = node.UserPrefix
	NodesGroup        = user.NodesGroup
	// Fleet is who reports for simulated nodes.
	Fleet = "bayplan:fleet"
)

// Authorizer is the cluster's authorizer.
type Authorizer struct {
	authorizer.Authorizer
	authorizer.RuleResolver
	index  *rbac.Index
	policy *policy.Policy
	stored policy.Stored
	synced []cache.DoneChecker
}

// New returns the cluster's authorizer, which learns of roles, bindings and pods by the factory's informers. client is the API server's own.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory) (*Authorizer, error) {
	defaults, err := policy.Default()
	if err != nil {
		return nil, err
	}
	nodes, err := node.New(client, factory, defaults.ClusterRole(policy.NodeRole).Rules)
	if err != nil {
		return nil, err
	}
	index := rbac.NewIndex()
	synced, err := index.Watch(factory)
	if err != nil {
		return nil, err
	}
	all, err := union.New(
		union.NamedAuthorizer{Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), AuthorizerName: "masters"},
		union.NamedAuthorizer{Authorizer: nodes, AuthorizerName: "node"},
		union.NamedAuthorizer{Authorizer: index, AuthorizerName: "rbac"},
	)
	roles := factory.Rbac().V1()
	return &Authorizer{
		Authorizer: all, RuleResolver: union.NewRuleResolvers(nodes, index), index: index, policy: defaults, synced: synced,
		stored: policy.Stored{
			ClusterRoles: roles.ClusterRoles().Lister(), ClusterRoleBindings: roles.ClusterRoleBindings().Lister(),
			Roles: roles.Roles().Lister(), RoleBindings: roles.RoleBindings().Lister(),
		},
	}, err
}

// Rules are the rules of roles that the user has in the namespace, those that hold everywhere included.
func (a *Authorizer) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	return a.index.Rules(u, namespace)
}

// settleTimeout is how long the default policy may take from the store to the index.
const settleTimeout = 10 * time.Second

// Start makes the default policy where it is not there yet, and returns when it counts. The informers must run. create stores an
// object of the group rbac.authorization.k8s.io.
func (a *Authorizer) Start(ctx context.Context, client kubernetes.Interface, create policy.Create) error {
	if !cache.WaitFor(ctx, "", a.synced...) {
		return context.Cause(ctx)
	}
	if err := a.policy.Ensure(ctx, client, create, a.stored); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("default policy: the API server does not see all of it %v after it was written", settleTimeout))
	defer cancel()
	roles, bindings := a.policy.Names()
	return a.index.Await(ctx, roles, bindings)
}
