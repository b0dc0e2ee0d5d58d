package authorization

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
)

// podsByNode is the index of the pod informer by which a node's pods are found.
const podsByNode = "spec.nodeName"

// nodes allows to a node what its pods make necessary: to see and report the pods that are bound to it, and to read what they refer to.
type nodes struct{ pods cache.SharedIndexInformer }

func newNodes(pods cache.SharedIndexInformer) (*nodes, error) {
	return &nodes{pods}, pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
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

func (n *nodes) authorize(a authorizer.Attributes) bool {
	node := nodeName(a)
	if node == "" {
		return false
	}
	switch a.GetAPIGroup() {
	case "":
		return n.allowsCore(node, a)
	case "coordination.k8s.io":
		return a.GetResource() == "leases" && a.GetNamespace() == nodeLeases &&
			(a.GetVerb() == "create" || a.GetName() == node && oneOf(a.GetVerb(), "get update patch delete"))
	}
	return false
}

func (n *nodes) allowsCore(node string, a authorizer.Attributes) bool {
	switch a.GetResource() {
	case "nodes":
		return a.GetName() == node && oneOf(a.GetVerb(), "get update patch")
	case "pods":
		return n.allowsPods(node, a)
	case "secrets", "configmaps":
		// A list or watch is allowed when it is for one object by name.
		return oneOf(a.GetVerb(), readVerbs) && a.GetName() != "" && n.refers(node, a.GetNamespace(), a.GetResource(), a.GetName())
	case "serviceaccounts":
		return a.GetSubresource() == "token" && a.GetVerb() == "create" && n.refers(node, a.GetNamespace(), a.GetResource(), a.GetName())
	}
	return false
}

func (n *nodes) allowsPods(node string, a authorizer.Attributes) bool {
	switch a.GetVerb() {
	case "list", "watch":
		if selectsNode(a, node) {
			return true
		}
	}
	obj, ok, err := n.pods.GetStore().GetByKey(a.GetNamespace() + "/" + a.GetName())
	if err != nil {
		return false
	}
	if !ok {
		// A pod that is gone, or that the cache does not have yet: what happened to it is told by the answer.
		return a.GetName() != "" && oneOf(a.GetVerb(), "get delete")
	}
	if obj.(*corev1.Pod).Spec.NodeName != node {
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

// refers reports whether a pod on the node refers to the object.
func (n *nodes) refers(node, namespace, resource, name string) bool {
	pods, err := n.pods.GetIndexer().ByIndex(podsByNode, node)
	if err != nil {
		return false
	}
	for _, obj := range pods {
		pod := obj.(*corev1.Pod)
		if pod.Namespace == namespace && references(pod, resource, name) {
			return true
		}
	}
	return false
}
