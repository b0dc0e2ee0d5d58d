package controllertest

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource that the API serves.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// GVK is the resource's group, version and kind.
func (r Resource) GVK() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// builtin are the resources that are there from the start: "group/version resource Kind", with a * for those without namespace.
const builtin = `
/v1 pods Pod
/v1 replicationcontrollers ReplicationController
/v1 services Service
/v1 endpoints Endpoints
/v1 configmaps ConfigMap
/v1 secrets Secret
/v1 serviceaccounts ServiceAccount
/v1 persistentvolumeclaims PersistentVolumeClaim
/v1 resourcequotas ResourceQuota
/v1 *persistentvolumes PersistentVolume
/v1 *nodes Node
/v1 *namespaces Namespace
apps/v1 deployments Deployment
apps/v1 replicasets ReplicaSet
apps/v1 statefulsets StatefulSet
apps/v1 daemonsets DaemonSet
apps/v1 controllerrevisions ControllerRevision
batch/v1 jobs Job
batch/v1 cronjobs CronJob
policy/v1 poddisruptionbudgets PodDisruptionBudget
discovery.k8s.io/v1 endpointslices EndpointSlice
networking.k8s.io/v1 *servicecidrs ServiceCIDR
networking.k8s.io/v1 *ipaddresses IPAddress
rbac.authorization.k8s.io/v1 *clusterroles ClusterRole
coordination.k8s.io/v1 leases Lease
storage.k8s.io/v1 *storageclasses StorageClass
storage.k8s.io/v1 *volumeattachments VolumeAttachment
storage.k8s.io/v1 *csidrivers CSIDriver
storage.k8s.io/v1 *csinodes CSINode
storage.k8s.io/v1 *volumeattributesclasses VolumeAttributesClass
certificates.k8s.io/v1 *certificatesigningrequests CertificateSigningRequest
storagemigration.k8s.io/v1 *storageversionmigrations StorageVersionMigration
admissionregistration.k8s.io/v1 *validatingadmissionpolicies ValidatingAdmissionPolicy
authorization.k8s.io/v1 *subjectaccessreviews SubjectAccessReview
apiextensions.k8s.io/v1 *customresourcedefinitions CustomResourceDefinition
`

func builtinResources() []Resource {
	var out []Resource
	for line := range strings.Lines(strings.TrimSpace(builtin)) {
		f := strings.Fields(line)
		group, version, _ := strings.Cut(f[0], "/")
		name, cluster := strings.CutPrefix(f[1], "*")
		out = append(out, Resource{schema.GroupVersionResource{Group: group, Version: version, Resource: name}, f[2], !cluster})
	}
	return out
}

// discovery answers requests for what the API serves.
func (a *API) discovery(path string) (any, int) {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case path == "/api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}, http.StatusOK
	case path == "/apis":
		return a.groups(), http.StatusOK
	case parts[0] == "api" && len(parts) == 2:
		return a.resourceList(schema.GroupVersion{Version: parts[1]}), http.StatusOK
	case parts[0] == "apis" && len(parts) == 3:
		return a.resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]}), http.StatusOK
	}
	return nil, http.StatusNotFound
}

func (a *API) groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[string]bool{"": true}
	for _, r := range a.resources {
		if seen[r.Group] {
			continue
		}
		seen[r.Group] = true
		version := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion().String(), Version: r.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return list
}

func (a *API) resourceList(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, r := range a.resources {
		if r.GroupVersion() == gv && r.Resource != reviews {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced, SingularName: strings.ToLower(r.Kind),
				Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	return list
}
