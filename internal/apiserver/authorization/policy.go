package authorization

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Names of the cluster's own users and groups, as in every Kubernetes cluster.
const (
	Scheduler         = user.KubeScheduler
	ControllerManager = user.KubeControllerManager
	NodeUserPrefix    = "system:node:"
	NodesGroup        = user.NodesGroup
	// Fleet is who reports for simulated nodes.
	Fleet      = "bayplan:fleet"
	nodeLeases = "kube-node-lease"
)

func allow(verbs, group, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: strings.Fields(resources)}
}

const readVerbs = "get list watch"

// policy is what the parts of the cluster may do, by "user:NAME" and "group:NAME".
var policy = map[string][]rbacv1.PolicyRule{
	"group:" + user.AllAuthenticated: {
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/", "/livez", "/readyz", "/healthz"}},
	},
	"group:" + user.AllUnauthenticated: {
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/livez", "/readyz", "/healthz"}},
	},
	"user:" + Scheduler: {
		allow(readVerbs, "", "nodes namespaces pods services replicationcontrollers persistentvolumes persistentvolumeclaims"),
		allow(readVerbs, "apps", "replicasets statefulsets"),
		allow(readVerbs, "policy", "poddisruptionbudgets"),
		allow(readVerbs, "storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities"),
		allow("delete", "", "pods"),
		allow("create", "", "pods/binding bindings"),
		allow("patch update", "", "pods/status"),
		allow("create patch update", "", "events"),
		allow("create patch update", "events.k8s.io", "events"),
		allow("create get update list watch", "coordination.k8s.io", "leases"),
	},
	// The garbage collector and the namespace controller delete whatever there is, of kinds that are not known today.
	"user:" + ControllerManager: {
		allow("get list watch create update patch delete deletecollection", "*", "*"),
	},
	"user:" + Fleet: {
		allow(readVerbs+" create patch", "", "nodes"),
		allow("patch update", "", "nodes/status pods/status"),
		allow(readVerbs+" delete", "", "pods"),
		allow("create patch update", "", "events"),
		allow("create get update", "coordination.k8s.io", "leases"),
	},
	"group:" + NodesGroup: {
		allow(readVerbs, "", "services endpoints"),
		allow("create get list watch", "", "nodes"),
		allow("create patch update", "", "events"),
		allow("create", "", "pods"),
		allow(readVerbs, "node.k8s.io", "runtimeclasses"),
		allow(readVerbs, "storage.k8s.io", "csidrivers volumeattachments"),
		allow("create", "authentication.k8s.io", "tokenreviews"),
		allow("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews"),
	},
}

func hasGroup(u user.Info, group string) bool { return slices.Contains(u.GetGroups(), group) }

func oneOf(verb, verbs string) bool { return slices.Contains(strings.Fields(verbs), verb) }
