package noderestriction

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

var node1 = &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup}}

// audiences is an authorizer that lets nodes ask for tokens of one audience.
type audiences string

func (a audiences) Authorize(_ context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
	if q.GetVerb() == "request-serviceaccounts-token-audience" && q.GetResource() == string(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func plugin(objects ...runtime.Object) *Plugin {
	client := fake.NewClientset(objects...)
	return New(client, informers.NewSharedInformerFactory(client, 0), func() authorizer.UnconditionalAuthorizer { return audiences("vault") })
}

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{NodeName: node}}
}

// attempt is a write and what comes of it: "" is admitted, else a part of the refusal.
type attempt struct {
	name      string
	resource  string // RESOURCE[.GROUP][/SUB]
	operation admission.Operation
	object    string
	obj, old  runtime.Object
	want      string
}

func (a attempt) run(t *testing.T, p *Plugin, u user.Info) {
	t.Helper()
	resource, sub, _ := strings.Cut(a.resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	err := p.Admit(t.Context(), admission.NewAttributesRecord(a.obj, a.old, schema.GroupVersionKind{}, "ns", a.object, schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		sub, a.operation, nil, false, u), nil)
	if (err == nil) != (a.want == "") || err != nil && !strings.Contains(err.Error(), a.want) {
		t.Errorf("%s: %v, want %q", a.name, err, a.want)
	}
}

func mirror(change func(*corev1.Pod)) *corev1.Pod {
	p := podOn("n1", "static")
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "uid-n1", Controller: ptr.To(true)}}
	if change != nil {
		change(p)
	}
	return p
}

func volume(source corev1.VolumeSource) *corev1.Pod {
	return mirror(func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} })
}

func TestMirrorPods(t *testing.T) {
	p := plugin(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-n1"}})
	owner := func(change func(*metav1.OwnerReference)) *corev1.Pod {
		return mirror(func(p *corev1.Pod) { change(&p.OwnerReferences[0]) })
	}
	env := func(c corev1.Container) *corev1.Pod {
		return mirror(func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{c} })
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"good":                  {mirror(nil), ""},
		"no mirror":             {mirror(func(p *corev1.Pod) { p.Annotations = nil }), "can only create mirror pods"},
		"elsewhere":             {mirror(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), "spec.nodeName set to itself"},
		"without owner":         {mirror(func(p *corev1.Pod) { p.OwnerReferences = nil }), "with an owner reference set to itself"},
		"two owners":            {mirror(func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences...) }), "single owner reference"},
		"another owner":         {owner(func(o *metav1.OwnerReference) { o.Name = "n2" }), "with an owner reference set to itself"},
		"no controller":         {owner(func(o *metav1.OwnerReference) { o.Controller = nil }), "controller owner reference"},
		"blocks":                {owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(true) }), "must not set blockOwnerDeletion"},
		"a former node":         {owner(func(o *metav1.OwnerReference) { o.UID = "old" }), "UID mismatch"},
		"account":               {mirror(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "a" }), "reference serviceaccounts"},
		"pull secret":           {mirror(func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }), "reference secrets"},
		"resource claim":        {mirror(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }), "reference resourceclaims"},
		"environment":           {env(corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}}), "reference secrets"},
		"environment of a map":  {env(corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}}), "reference configmaps"},
		"variable":              {env(corev1.Container{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}}}), "reference secrets"},
		"variable of a map":     {env(corev1.Container{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}}}}), "reference configmaps"},
		"variable of a field":   {env(corev1.Container{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}, {Value: "v"}}}), ""},
		"host path":             {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), ""},
		"secret":                {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), "secrets (via secret volumes)"},
		"config map":            {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), "configmaps (via configmap volumes)"},
		"claim":                 {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), "persistentvolumeclaims"},
		"ephemeral claim":       {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), "via ephemeral volumes"},
		"driver":                {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), "csidrivers"},
		"iscsi":                 {volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}), ""},
		"iscsi with a secret":   {volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &corev1.LocalObjectReference{}}}), "secrets"},
		"projected fields":      {volume(projected(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}})), ""},
		"projected token":       {volume(projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})), "serviceaccounts (via projected volumes)"},
		"projected trust":       {volume(projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}})), "clustertrustbundles"},
		"projected certificate": {volume(projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}})), "podcertificates"},
		"projected unknown":     {volume(projected(corev1.VolumeProjection{})), "unknown source"},
	} {
		attempt{name: name, resource: "pods", operation: admission.Create, obj: c.pod, want: c.want}.run(t, p, node1)
	}
}

func projected(s corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{s}}}
}

func TestPods(t *testing.T) {
	p := plugin(podOn("n1", "mine"), podOn("n2", "theirs"))
	labelled, claimed := podOn("n1", "mine"), podOn("n1", "mine")
	labelled.Labels = map[string]string{"a": "b"}
	claimed.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}}
	for _, a := range []attempt{
		{name: "delete", resource: "pods", operation: admission.Delete, object: "mine"},
		{name: "delete theirs", resource: "pods", operation: admission.Delete, object: "theirs", want: "can only delete pods with spec.nodeName set to itself"},
		{name: "delete none", resource: "pods", operation: admission.Delete, object: "none", want: "not found"},
		{name: "update", resource: "pods", operation: admission.Update, object: "mine", want: "can only create and delete mirror pods"},
		{name: "status", resource: "pods/status", operation: admission.Update, object: "mine", obj: podOn("n1", "mine"), old: podOn("n1", "mine")},
		{name: "status of theirs", resource: "pods/status", operation: admission.Update, object: "theirs", obj: podOn("n1", "theirs"), old: podOn("n2", "theirs"), want: "can only update pod status for pods with spec.nodeName set to itself"},
		{name: "labels", resource: "pods/status", operation: admission.Update, object: "mine", obj: labelled, old: podOn("n1", "mine"), want: "cannot update labels through pod status"},
		{name: "claims", resource: "pods/status", operation: admission.Update, object: "mine", obj: claimed, old: podOn("n1", "mine"), want: "cannot update resource claim statues"},
		{name: "evict", resource: "pods/eviction", operation: admission.Create, object: "mine", obj: &policyv1.Eviction{}},
		{name: "evict by body", resource: "pods/eviction", operation: admission.Create, obj: &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, want: "can only evict pods"},
		{name: "evict what", resource: "pods/eviction", operation: admission.Create, obj: &policyv1.Eviction{}, want: "could not determine pod"},
		{name: "exec", resource: "pods/exec", operation: admission.Create, object: "mine", want: `unexpected pod subresource "exec"`},
		{name: "binding", resource: "pods/binding", operation: admission.Create, object: "mine", want: "unexpected pod subresource"},
	} {
		a.run(t, p, node1)
	}
}

func labelled(labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
}

func TestNodes(t *testing.T) {
	p := plugin()
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	owned := labelled(nil)
	owned.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
	configured := labelled(nil)
	configured.Spec.ConfigSource = &corev1.NodeConfigSource{}
	for _, a := range []attempt{
		{name: "itself", operation: admission.Create, object: "n1", obj: labelled(map[string]string{"kubernetes.io/hostname": "n1", "beta.kubernetes.io/os": "linux", "example.com/a": "b", "a": "b", "a.node.kubernetes.io/x": "y"}, taint)},
		{name: "another", operation: admission.Create, object: "n2", obj: labelled(nil), want: `node "n1" is not allowed to modify node "n2"`},
		{name: "with a source", operation: admission.Create, object: "n1", obj: configured, want: "non-nil configSource"},
		{name: "with a role", operation: admission.Create, object: "n1", obj: labelled(map[string]string{"node-role.kubernetes.io/x": "", "a.k8s.io/x": "", "x.node-restriction.kubernetes.io/y": ""}),
			want: `node "n1" is not allowed to set the following labels: a.k8s.io/x, node-role.kubernetes.io/x, x.node-restriction.kubernetes.io/y`},
		{name: "keeps its role", operation: admission.Update, object: "n1", obj: labelled(map[string]string{"node-role.kubernetes.io/x": ""}), old: labelled(map[string]string{"node-role.kubernetes.io/x": ""})},
		{name: "takes a role away", operation: admission.Update, object: "n1", obj: labelled(nil), old: labelled(map[string]string{"node-role.kubernetes.io/x": ""}), want: "is not allowed to modify labels: node-role.kubernetes.io/x"},
		{name: "changes a zone", operation: admission.Update, object: "n1", obj: labelled(map[string]string{"topology.kubernetes.io/zone": "b"}), old: labelled(map[string]string{"topology.kubernetes.io/zone": "a"})},
		{name: "changes taints", operation: admission.Update, object: "n1", obj: labelled(nil), old: labelled(nil, taint), want: "is not allowed to modify taints"},
		{name: "changes owners", operation: admission.Update, object: "n1", obj: owned, old: labelled(nil), want: "is not allowed to modify ownerReferences"},
		{name: "takes a source", operation: admission.Update, object: "n1", obj: configured, old: labelled(nil), want: "update configSource"},
		{name: "deletes another", operation: admission.Delete, object: "n2", want: "not allowed to modify node"},
	} {
		a.resource = "nodes"
		a.run(t, p, node1)
	}
}

func TestTokens(t *testing.T) {
	spoken := podOn("n1", "mine")
	spoken.Spec.Volumes = []corev1.Volume{
		{Name: "t", VolumeSource: projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "bank"}})},
		{Name: "c", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
		{Name: "d", VolumeSource: projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})},
	}
	p := plugin(spoken, podOn("n2", "theirs"),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "disks"}}}})
	request := func(name, uid string, audiences ...string) *authenticationv1.TokenRequest {
		return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID("uid-" + uid)}}}
	}
	without := request("mine", "mine")
	without.Spec.BoundObjectRef.UID = ""
	for _, a := range []attempt{
		{name: "default audience", obj: request("mine", "mine")},
		{name: "of a volume", obj: request("mine", "mine", "bank")},
		{name: "of a driver", obj: request("mine", "mine", "disks")},
		{name: "allowed", obj: request("mine", "mine", "vault")},
		{name: "of nobody", obj: request("mine", "mine", "other"), want: `system:node:n1 is not authorized to request tokens for audience "other"`},
		{name: "two", obj: request("mine", "mine", "bank", "disks"), want: "0 or 1 audiences"},
		{name: "unbound", obj: &authenticationv1.TokenRequest{}, want: "not bound to a pod"},
		{name: "without a UID", obj: without, want: "without a uid"},
		{name: "of a former pod", obj: request("mine", "other"), want: "does not match the UID in record"},
		{name: "theirs", obj: request("theirs", "theirs"), want: "scheduled on a different node"},
		{name: "none", obj: request("none", "none"), want: "not found"},
	} {
		a.resource, a.operation, a.object = "serviceaccounts/token", admission.Create, "account"
		a.run(t, p, node1)
	}
}

func TestOwnObjects(t *testing.T) {
	p := plugin()
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	slice := func(node string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: &node}}
	}
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "1"}}
		change(c)
		return c
	}
	old := claim(func(*corev1.PersistentVolumeClaim) {})
	for _, a := range []attempt{
		{name: "lease elsewhere", resource: "leases.coordination.k8s.io", operation: admission.Create, obj: lease("n1"), want: `"kube-node-lease" system namespace`},
		{name: "driver list", resource: "csinodes.storage.k8s.io", operation: admission.Create, obj: &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
		{name: "driver list of another", resource: "csinodes.storage.k8s.io", operation: admission.Create, obj: &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, want: "same name as the requesting node"},
		{name: "slice", resource: "resourceslices.resource.k8s.io", operation: admission.Create, obj: slice("n1")},
		{name: "slice of another", resource: "resourceslices.resource.k8s.io", operation: admission.Create, obj: slice("n2"), want: "can only create ResourceSlice"},
		{name: "slice of none", resource: "resourceslices.resource.k8s.io", operation: admission.Create, obj: &resourcev1.ResourceSlice{}, want: "can only create ResourceSlice"},
		{name: "deleting a slice of another", resource: "resourceslices.resource.k8s.io", operation: admission.Delete, old: slice("n2"), want: "can only delete ResourceSlice"},
		{name: "claim", resource: "persistentvolumeclaims", operation: admission.Update, obj: old, old: old, want: "may only update PVC status"},
		{name: "claim status", resource: "persistentvolumeclaims/status", operation: admission.Update, old: old, obj: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions, c.ResourceVersion = []corev1.PersistentVolumeClaimCondition{{Type: "Resizing"}}, ""
		})},
		{name: "claim phase", resource: "persistentvolumeclaims/status", operation: admission.Update, old: old, obj: claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), want: "not allowed to update fields other than"},
		{name: "claim label", resource: "persistentvolumeclaims/status", operation: admission.Update, old: old, obj: claim(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }), want: "not allowed to update fields other than"},
		{name: "what is all nodes'", resource: "events", operation: admission.Create, obj: &corev1.Event{}},
	} {
		a.run(t, p, node1)
	}
}

// TestOthersPass: who is no node is not looked at.
func TestOthersPass(t *testing.T) {
	for _, u := range []user.Info{&user.DefaultInfo{Name: "system:node:n1"}, &user.DefaultInfo{Name: "ann", Groups: []string{user.NodesGroup}}, nil} {
		attempt{name: "a pod", resource: "pods", operation: admission.Create, obj: podOn("n2", "p")}.run(t, plugin(), u)
	}
}
