package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// request is what a node asks for. Its methods decide about one resource each, and say why when they do not allow.
type request struct {
	authorizer.Attributes
	authorizer *Authorizer
	node       string
}

// yes is the reason of what is allowed.
const yes = ""

func (r request) verbIs(verbs string) bool {
	return slices.Contains(strings.Fields(verbs), r.GetVerb())
}

func (r request) nodes() (string, bool) {
	switch {
	case r.GetSubresource() == "status":
		return "", r.verbIs("update patch")
	case r.GetSubresource() != "":
		return "", false
	case r.verbIs("create update patch"):
		return yes, true
	case !r.verbIs("get list watch"):
		return "", false
	case r.GetName() == r.node:
		// Its own name, also before the object is there.
		return yes, true
	case r.GetName() == "":
		return fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", r.node), false
	}
	return fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", r.node, r.GetName()), false
}

// pods: a node reads its own. What it writes is looked at by admission, which knows the pod.
func (r request) pods(ctx context.Context) (string, bool) {
	switch {
	case r.GetSubresource() == "status":
		return "", r.verbIs("update patch")
	case r.GetSubresource() == "eviction":
		return "", r.verbIs("create")
	case r.GetSubresource() != "":
		return "", false
	case r.verbIs("create delete"):
		return yes, true
	case r.verbIs("list watch") && r.selectsNode():
		return yes, true
	case r.verbIs("list watch") && r.GetName() == "":
		return "can only list/watch pods with spec.nodeName field selector", false
	case !r.verbIs("get list watch") || r.GetName() == "":
		return "", false
	}
	pod, err := r.authorizer.pod(ctx, r.node, r.GetNamespace(), r.GetName())
	if apierrors.IsNotFound(err) {
		// That a pod is gone is told by the answer.
		return yes, true
	}
	return r.unrelated(err == nil && pod.Spec.NodeName == r.node)
}

func (r request) unrelated(related bool) (string, bool) {
	if related {
		return yes, true
	}
	return fmt.Sprintf("no relationship found between node '%s' and this object", r.node), false
}

// read allows to read, list and watch one object by its name.
func (r request) read(ctx context.Context) (string, bool) {
	switch {
	case !r.verbIs("get list watch"):
		return "can only read resources of this type", false
	case r.GetSubresource() != "":
		return "cannot read subresource", false
	case r.GetNamespace() == "":
		return "can only read namespaced object of this type", false
	}
	return r.related(ctx)
}

// get allows to get one object.
func (r request) get(ctx context.Context) (string, bool) {
	switch {
	case !r.verbIs("get"):
		return "can only get individual resources of this type", false
	case r.GetSubresource() != "":
		return "cannot get subresource", false
	}
	return r.related(ctx)
}

func (r request) related(ctx context.Context) (string, bool) {
	if r.GetName() == "" {
		return "No Object name found", false
	}
	return r.unrelated(r.authorizer.leadsTo(ctx, r.node, object{r.GetResource(), r.GetNamespace(), r.GetName()}))
}

func (r request) serviceAccounts(ctx context.Context) (string, bool) {
	switch {
	case r.verbIs("get") && r.GetSubresource() == "":
		return r.read(ctx)
	case !r.verbIs("create") || r.GetName() == "":
		return "can only create tokens for individual service accounts", false
	case r.GetSubresource() != "token":
		return "can only create token subresource of serviceaccount", false
	}
	return r.related(ctx)
}

func (r request) claims(ctx context.Context) (string, bool) {
	switch {
	case r.GetSubresource() != "status":
		return r.get(ctx)
	case !r.verbIs("update patch"):
		return "can only get/update/patch this type", false
	}
	return r.related(ctx)
}

func (r request) leases() (string, bool) {
	switch {
	case !r.verbIs("get create update patch delete"):
		return "can only get, create, update, patch, or delete a node lease", false
	case r.GetNamespace() != corev1.NamespaceNodeLease:
		return fmt.Sprintf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease), false
	case !r.verbIs("create") && r.GetName() != r.node:
		return "can only access node lease with the same name as the requesting node", false
	}
	return yes, true
}

func (r request) csiNodes() (string, bool) {
	switch {
	case r.GetSubresource() != "":
		return "cannot authorize CSINode subresources", false
	case !r.verbIs("get create update patch delete"):
		return "can only get, create, update, patch, or delete a CSINode", false
	case !r.verbIs("create") && r.GetName() != r.node:
		return "can only access CSINode with the same name as the requesting node", false
	}
	return yes, true
}

func (r request) slices(ctx context.Context) (string, bool) {
	switch {
	case r.GetSubresource() != "":
		return "cannot authorize ResourceSlice subresources", false
	case r.verbIs("create"):
		return yes, true
	case r.verbIs("get update patch delete"):
		return r.related(ctx)
	case r.verbIs("list watch deletecollection") && r.selectsNode():
		return yes, true
	case r.verbIs("list watch deletecollection"):
		return "can only list/watch/deletecollection resourceslices with nodeName field selector", false
	}
	return "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection", false
}

func (r request) podCertificateRequests(ctx context.Context) (string, bool) {
	switch {
	case r.GetSubresource() != "":
		return "nodes may not access the status subresource of PodCertificateRequests", false
	case r.verbIs("create"):
		return yes, true
	case r.verbIs("get"):
		return r.related(ctx)
	case r.verbIs("list watch") && r.selectsNode():
		return yes, true
	case r.verbIs("list watch"):
		return "can only list/watch podcertificaterequests with nodeName field selector", false
	}
	return fmt.Sprintf("nodes may not %s podcertificaterequests", r.GetVerb()), false
}

// selectsNode: what is listed or watched is what says that it is on the node.
func (r request) selectsNode() bool {
	requirements, err := r.GetFieldSelector()
	if err != nil {
		return false
	}
	for _, q := range requirements {
		if q.Field == podsByNode && q.Value == r.node && (q.Operator == "=" || q.Operator == "==") {
			return true
		}
	}
	return false
}
