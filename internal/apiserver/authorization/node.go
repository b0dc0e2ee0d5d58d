package authorization

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// podsByNode is the index of the pod informer by which a node's pods are found.
const podsByNode = "spec.nodeName"

// nodes allows to a node what its pods make necessary: to see and report the pods that are bound to it, and to read what they refer to.
//
// A node may hear of a pod before the cache here does. What the cache does not allow is therefore asked of the API once more.
type nodes struct {
	pods   cache.SharedIndexInformer
	client kubernetes.Interface
}

func newNodes(client kubernetes.Interface, pods cache.SharedIndexInformer) (*nodes, error) {
	return &nodes{pods, client}, pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	}})
}

// nodeName is the node that the request comes from; "" when it is not a node's.
func nodeName(a authorizer.Attributes) string {
	name, ok := strings.CutPrefix(a.GetUser().GetName(), NodeUserPrefix)
	if !ok || !hasGroup(a.GetUser(), NodesGroup) {
		return ""
	}
	return name
}

func (n *nodes) authorize(ctx context.Context, a authorizer.Attributes) bool {
	node := nodeName(a)
	if node == "" {
		return false
	}
	switch a.GetAPIGroup() {
	case "":
		return n.allowsCore(ctx, node, a)
	case "coordination.k8s.io":
		return a.GetResource() == "leases" && a.GetNamespace() == nodeLeases &&
			(a.GetVerb() == "create" || a.GetName() == node && oneOf(a.GetVerb(), "get update patch delete"))
	}
	return false
}

func (n *nodes) allowsCore(ctx context.Context, node string, a authorizer.Attributes) bool {
	switch a.GetResource() {
	case "nodes":
		return a.GetName() == node && oneOf(a.GetVerb(), "get update patch")
	case "pods":
		return n.allowsPods(ctx, node, a)
	case "secrets", "configmaps":
		// A list or watch is allowed when it is for one object by name.
		return oneOf(a.GetVerb(), readVerbs) && a.GetName() != "" && n.refers(ctx, node, a.GetNamespace(), a.GetResource(), a.GetName())
	case "serviceaccounts":
		return a.GetSubresource() == "token" && a.GetVerb() == "create" && n.refers(ctx, node, a.GetNamespace(), a.GetResource(), a.GetName())
	}
	return false
}

func (n *nodes) allowsPods(ctx context.Context, node string, a authorizer.Attributes) bool {
	switch a.GetVerb() {
	case "list", "watch":
		if selectsNode(a, node) {
			return true
		}
	}
	if a.GetName() == "" {
		return false
	}
	pod, err := n.pod(ctx, node, a.GetNamespace(), a.GetName())
	if apierrors.IsNotFound(err) {
		// That a pod is gone is told by the answer.
		return oneOf(a.GetVerb(), "get delete")
	}
	if err != nil || pod.Spec.NodeName != node {
		return false
	}
	if a.GetSubresource() == "status" {
		return oneOf(a.GetVerb(), "get update patch")
	}
	return a.GetSubresource() == "" && oneOf(a.GetVerb(), "get list watch delete")
}

func selectsNode(a authorizer.Attributes, node string) bool {
	requirements, err := a.GetFieldSelector()
	if err != nil {
		return false
	}
	for _, r := range requirements {
		if r.Field == podsByNode && r.Value == node && (r.Operator == "=" || r.Operator == "==") {
			return true
		}
	}
	return false
}

// pod returns the pod from the cache, if it is there and bound to the node, and otherwise from the API.
func (n *nodes) pod(ctx context.Context, node, namespace, name string) (*corev1.Pod, error) {
	obj, ok, err := n.pods.GetStore().GetByKey(namespace + "/" + name)
	if err == nil && ok && obj.(*corev1.Pod).Spec.NodeName == node {
		return obj.(*corev1.Pod), nil
	}
	return n.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// refers reports whether a pod on the node refers to the object.
func (n *nodes) refers(ctx context.Context, node, namespace, resource, name string) bool {
	cached, err := n.pods.GetIndexer().ByIndex(podsByNode, node)
	if err != nil {
		return false
	}
	for _, obj := range cached {
		if pod := obj.(*corev1.Pod); pod.Namespace == namespace && references(pod, resource, name) {
			return true
		}
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(podsByNode, node).String()}
	current, err := n.client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(current.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == node && references(&pod, resource, name)
	})
}
