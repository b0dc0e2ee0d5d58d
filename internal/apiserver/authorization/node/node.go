// Package node decides what nodes may do: what the role system:node says, and where that is about objects of others only for those that the node has to do with.
//
// A node is who has a user name system:node:NAME and the group system:nodes. It sees its own Node and the pods that are bound to it, and of Secrets, ConfigMaps, claims,
// volumes and service accounts those that its pods lead to:
//
//	node ◄── Pod ◄── Secret, ConfigMap, ServiceAccount, ResourceClaim, PersistentVolumeClaim ◄── PersistentVolume ◄── Secret
//	node ◄── VolumeAttachment, ResourceSlice, PodCertificateRequest
//
// Pods are looked up in an informer by node. A node may hear of a pod before this cache does, so what the cache does not allow is asked of the API once more. What a
// node writes is restricted further by the admission plugin NodeRestriction, which sees the objects.
package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/apiserver/authorization/rbac"
)

// UserPrefix is what the user name of a node begins with.
const UserPrefix = "system:node:"

// Name is the node that the user is; "" when it is none.
func Name(u user.Info) string {
	name, ok := strings.CutPrefix(u.GetName(), UserPrefix)
	if !ok || !slices.Contains(u.GetGroups(), user.NodesGroup) {
		return ""
	}
	return name
}

// Authorizer authorizes nodes.
type Authorizer struct {
	pods   cache.SharedIndexInformer
	client kubernetes.Interface
	// rules are for resources that are all nodes' alike.
	rules []rbacv1.PolicyRule
}

// New returns an authorizer that looks pods up in the factory's informer.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, rules []rbacv1.PolicyRule) (*Authorizer, error) {
	pods := factory.Core().V1().Pods().Informer()
	n := &Authorizer{pods: pods, client: client, rules: rules}
	return n, pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	}})
}

// Authorize implements authorizer.Authorizer.
func (n *Authorizer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	node := Name(a.GetUser())
	if node == "" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if reason, ok := n.allows(ctx, node, a); !ok {
		return authorizer.DecisionNoOpinion, reason, nil
	}
	return authorizer.DecisionAllow, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (n *Authorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(n.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer: there are no conditions.
func (*Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver: what a node may do cannot be listed.
func (*Authorizer) RulesFor(_ context.Context, u user.Info, _ string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	if Name(u) == "" {
		return nil, nil, false, nil
	}
	return nil, nil, true, fmt.Errorf("node authorizer does not support user rule resolution")
}

// allows returns the reason when it does not.
func (n *Authorizer) allows(ctx context.Context, node string, a authorizer.Attributes) (string, bool) {
	if !a.IsResourceRequest() {
		return "", rbac.AnyAllows(n.rules, a)
	}
	r := request{authorizer: n, node: node, Attributes: a}
	switch (schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}) {
	case schema.GroupResource{Resource: "nodes"}:
		return r.nodes()
	case schema.GroupResource{Resource: "pods"}:
		return r.pods(ctx)
	case schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}:
		return r.read(ctx)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return r.serviceAccounts(ctx)
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return r.claims(ctx)
	case schema.GroupResource{Resource: "persistentvolumes"}, schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"},
		schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}:
		return r.get(ctx)
	case schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return r.leases()
	case schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}:
		return r.csiNodes()
	case schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}:
		return r.slices(ctx)
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:
		return r.podCertificateRequests(ctx)
	}
	return "", rbac.AnyAllows(n.rules, a)
}
