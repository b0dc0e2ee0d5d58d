package authorization

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func podOn(node, name string, change func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{}}}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// world has a pod on node n1 that refers to all kinds of things, one on n2, and none that is bound to no node.
func world() []*corev1.Pod {
	return []*corev1.Pod{
		podOn("n1", "mine", func(s *corev1.PodSpec) {
			s.ServiceAccountName = "account"
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
			s.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
				{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected"}}},
				}}}},
			}
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "from"}}}}
			s.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}},
			}}}}}
		}),
		podOn("n2", "other", func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "theirs"}} }),
		podOn("", "pending", nil),
	}
}

// attributes reads "verb group/resource/subresource namespace/name".
func attributes(u user.Info, verb, group, resource, sub, namespace, name, selector string) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{User: u, Verb: verb, APIGroup: group, Resource: resource, Subresource: sub, Namespace: namespace, Name: name, ResourceRequest: true}
	if selector != "" {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			panic(err)
		}
		a.FieldSelectorRequirements = parsed.Requirements()
	}
	return a
}

func TestAuthorization(t *testing.T) {
	node1 := &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup, user.AllAuthenticated}}
	impostor := &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.AllAuthenticated}}
	scheduler := &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}}
	master := &user.DefaultInfo{Name: "m", Groups: []string{user.SystemPrivilegedGroup}}
	anyone := &user.DefaultInfo{Name: "a", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		user                                               user.Info
		verb, group, resource, sub, namespace, name, field string
		want                                               bool
	}{
		{master, "delete", "", "nodes", "", "", "n1", "", true},
		{anyone, "get", "", "pods", "", "ns", "mine", "", false},
		{scheduler, "create", "", "pods", "binding", "ns", "mine", "", true},
		{scheduler, "create", "", "pods", "", "ns", "mine", "", false},
		{scheduler, "get", "", "secrets", "", "ns", "pull", "", false},
		{node1, "patch", "", "nodes", "status", "", "n1", "", true},
		{node1, "patch", "", "nodes", "status", "", "n2", "", false},
		{node1, "delete", "", "nodes", "", "", "n1", "", false},
		{node1, "list", "", "pods", "", "", "", "spec.nodeName=n1", true},
		{node1, "watch", "", "pods", "", "", "", "spec.nodeName=n1", true},
		{node1, "list", "", "pods", "", "", "", "spec.nodeName=n2", false},
		{node1, "list", "", "pods", "", "", "", "spec.nodeName!=n1", false},
		{node1, "list", "", "pods", "", "", "", "", false},
		{node1, "get", "", "pods", "", "ns", "mine", "", true},
		{node1, "get", "", "pods", "", "ns", "other", "", false},
		{node1, "get", "", "pods", "", "ns", "gone", "", true},
		{node1, "patch", "", "pods", "status", "ns", "mine", "", true},
		{node1, "patch", "", "pods", "status", "ns", "other", "", false},
		{node1, "patch", "", "pods", "status", "ns", "pending", "", false},
		{node1, "patch", "", "pods", "status", "ns", "gone", "", false},
		{node1, "patch", "", "pods", "", "ns", "mine", "", false},
		{node1, "create", "", "pods", "binding", "ns", "mine", "", false},
		{node1, "delete", "", "pods", "", "ns", "mine", "", true},
		{node1, "delete", "", "pods", "", "ns", "other", "", false},
		{node1, "get", "", "secrets", "", "ns", "pull", "", true},
		{node1, "get", "", "secrets", "", "ns", "volume", "", true},
		{node1, "watch", "", "secrets", "", "ns", "key", "", true},
		{node1, "get", "", "secrets", "", "ns", "theirs", "", false},
		{node1, "get", "", "secrets", "", "elsewhere", "pull", "", false},
		{node1, "list", "", "secrets", "", "ns", "", "", false},
		{node1, "update", "", "secrets", "", "ns", "pull", "", false},
		{node1, "get", "", "configmaps", "", "ns", "projected", "", true},
		{node1, "get", "", "configmaps", "", "ns", "from", "", true},
		{node1, "get", "", "configmaps", "", "ns", "pull", "", false},
		{node1, "create", "", "serviceaccounts", "token", "ns", "account", "", true},
		{node1, "create", "", "serviceaccounts", "token", "ns", "default", "", false},
		{node1, "update", "coordination.k8s.io", "leases", "", "kube-node-lease", "n1", "", true},
		{node1, "update", "coordination.k8s.io", "leases", "", "kube-node-lease", "n2", "", false},
		{node1, "update", "coordination.k8s.io", "leases", "", "kube-system", "n1", "", false},
		{impostor, "patch", "", "nodes", "status", "", "n1", "", false},
		{impostor, "get", "", "secrets", "", "ns", "pull", "", false},
	} {
		// Whether the cache has heard of the pods must make no difference.
		for _, cached := range []bool{true, false} {
			client := fake.NewClientset()
			factory := informers.NewSharedInformerFactory(client, 0)
			a, err := New(client, factory)
			if err != nil {
				t.Fatal(err)
			}
			for _, pod := range world() {
				if err := client.Tracker().Add(pod); err != nil {
					t.Fatal(err)
				}
				if cached {
					if err := factory.Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
						t.Fatal(err)
					}
				}
			}
			request := attributes(test.user, test.verb, test.group, test.resource, test.sub, test.namespace, test.name, test.field)
			decision, _, err := a.Authorize(t.Context(), request)
			if got := decision == authorizer.DecisionAllow; err != nil || got != test.want {
				t.Errorf("%s %s %s/%s %s/%s %s (cached %v): %v, %v; want %v", test.user.GetName(), test.verb, test.resource, test.sub, test.namespace, test.name, test.field, cached, got, err, test.want)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	a, err := New(fake.NewClientset(), informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	if err != nil {
		t.Fatal(err)
	}
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	anyone := &user.DefaultInfo{Name: "a", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		user user.Info
		path string
		want bool
	}{
		{anonymous, "/livez", true}, {anonymous, "/readyz", true}, {anonymous, "/version", false}, {anonymous, "/api", false}, {anonymous, "/metrics", false}, {anonymous, "/livez/etcd", false},
		{anyone, "/api/v1", true}, {anyone, "/apis", true}, {anyone, "/openapi/v3/api/v1", true}, {anyone, "/version", true}, {anyone, "/metrics", false}, {anyone, "/debug/pprof/heap", false}, {anyone, "/apiserver", false},
	} {
		decision, _, err := a.Authorize(t.Context(), authorizer.AttributesRecord{User: test.user, Verb: "get", Path: test.path})
		if got := decision == authorizer.DecisionAllow; err != nil || got != test.want {
			t.Errorf("%s %s: %v, %v; want %v", test.user.GetName(), test.path, got, err, test.want)
		}
	}
}
