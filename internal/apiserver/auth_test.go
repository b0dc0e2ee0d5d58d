package apiserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// as is a client of a user who is authenticated.
func (a *api) as(t testing.TB, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	config := a.server.ClientConfig(&user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)})
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// eventually waits until what a user was given or denied has reached the authorizer.
func eventually(t testing.TB, f func() bool, what string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, cacheTimeout, true, func(context.Context) (bool, error) { return f(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// pollInterval is how often eventually looks.
const pollInterval = 2 * time.Millisecond

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func allow(verbs, group, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: strings.Fields(resources)}
}

func bind(name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}}
}

func subject(kind, name string) rbacv1.Subject {
	s := rbacv1.Subject{Kind: kind, Name: name}
	if kind == rbacv1.ServiceAccountKind {
		s.Namespace = "default"
	}
	return s
}

// give binds a ClusterRole in the namespace default and waits until it counts.
func (a *api) give(t testing.TB, name, role string, s rbacv1.Subject, groups ...string) {
	t.Helper()
	_, err := a.client.RbacV1().RoleBindings("default").Create(t.Context(), bind(name, "ClusterRole", role, s), metav1.CreateOptions{})
	must(t, err)
	u := s.Name
	if s.Kind == rbacv1.GroupKind {
		u, groups = "somebody", append(groups, s.Name)
	}
	if s.Kind == rbacv1.ServiceAccountKind {
		u = "system:serviceaccount:" + s.Namespace + ":" + s.Name
	}
	client := a.as(t, u, groups...)
	eventually(t, func() bool {
		_, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, "pods are listed by "+u)
}

func TestRolesDecide(t *testing.T) {
	a := startAPI(t)
	for _, s := range []rbacv1.Subject{subject(rbacv1.UserKind, "ann"), subject(rbacv1.GroupKind, "crew"), subject(rbacv1.ServiceAccountKind, "robot")} {
		a.give(t, strings.ToLower(s.Kind), "view", s)
	}
	ann := a.as(t, "ann")
	if _, err := ann.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		err.Error() != `secrets is forbidden: User "ann" cannot list resource "secrets" in API group "" in the namespace "default"` {
		t.Errorf("secrets: %v", err)
	}
	if _, err := ann.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("pods elsewhere: %v", err)
	}
	if _, err := ann.CoreV1().Pods("default").Create(t.Context(), newPod("p"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("creating: %v", err)
	}
	must(t, a.client.RbacV1().RoleBindings("default").Delete(t.Context(), "user", metav1.DeleteOptions{}))
	eventually(t, func() bool {
		_, err := ann.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	}, "the binding is gone")
}

// TestReviews: what `kubectl auth can-i --list` and `whoami` ask.
func TestReviews(t *testing.T) {
	a := startAPI(t)
	a.give(t, "view", "view", subject(rbacv1.UserKind, "ann"))
	ann := a.as(t, "ann", "crew")
	self, err := ann.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if u := self.Status.UserInfo; u.Username != "ann" || !slices.Contains(u.Groups, "crew") {
		t.Errorf("who: %+v", u)
	}
	rules, err := ann.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
	must(t, err)
	if rules.Status.Incomplete || len(rules.Status.NonResourceRules) == 0 || !slices.ContainsFunc(rules.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool {
		return slices.Contains(r.Resources, "pods") && slices.Equal(r.Verbs, []string{"get", "list", "watch"})
	}) {
		t.Errorf("rules: %+v", rules.Status)
	}
	review, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "ann", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}}}, metav1.CreateOptions{})
	must(t, err)
	if want := `RBAC: allowed by RoleBinding "view/default" of ClusterRole "view" to User "ann"`; !review.Status.Allowed || review.Status.Reason != want {
		t.Errorf("review: %+v, want %s", review.Status, want)
	}
	if _, err := ann.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("asking about others: %v", err)
	}
}

// TestEscalation: nobody gives what they do not hold.
func TestEscalation(t *testing.T) {
	a := startAPI(t)
	a.give(t, "admin", "admin", subject(rbacv1.UserKind, "boss"))
	boss := a.as(t, "boss").RbacV1()
	ctx, create := t.Context(), metav1.CreateOptions{}
	_, err := boss.Roles("default").Create(ctx, role("fine", allow("get", "", "pods secrets")), create)
	must(t, err)
	_, err = boss.Roles("default").Create(ctx, role("nodes", allow("get list", "", "nodes"), allow("*", "apps", "deployments")), create)
	want := `roles.rbac.authorization.k8s.io "nodes" is forbidden: user "boss" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}
{APIGroups:["apps"], Resources:["deployments"], Verbs:["*"]}`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	fine, err := boss.Roles("default").Get(ctx, "fine", metav1.GetOptions{})
	must(t, err)
	fine.Rules = append(fine.Rules, allow("get", "", "nodes"))
	if _, err := boss.Roles("default").Update(ctx, fine, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("adding to a role: %v", err)
	}
	_, err = boss.RoleBindings("default").Create(ctx, bind("mine", "Role", "fine", subject(rbacv1.UserKind, "ann")), create)
	must(t, err)
	_, err = boss.RoleBindings("default").Create(ctx, bind("edit", "ClusterRole", "edit", subject(rbacv1.UserKind, "ann")), create)
	must(t, err)
	if _, err := boss.RoleBindings("default").Create(ctx, bind("all", "ClusterRole", "cluster-admin", subject(rbacv1.UserKind, "ann")), create); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `{NonResourceURLs:["*"], Verbs:["*"]}`) {
		t.Errorf("binding cluster-admin: %v", err)
	}
	if _, err := boss.RoleBindings("default").Create(ctx, bind("none", "Role", "none", subject(rbacv1.UserKind, "ann")), create); !apierrors.IsNotFound(err) {
		t.Errorf("binding a role that is not there: %v", err)
	}
	checkEscalationVerbs(t, a)
}

// checkEscalationVerbs: "escalate" and "bind" allow what one does not hold, and PUT creates no more than POST.
func checkEscalationVerbs(t *testing.T, a *api) {
	ctx, create := t.Context(), metav1.CreateOptions{}
	rules := []rbacv1.PolicyRule{
		allow("get list create update patch", rbacv1.GroupName, "roles rolebindings clusterroles"), allow("list", "", "pods"),
		{Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"cluster-admin"}},
		{Verbs: []string{"escalate"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"mine"}},
	}
	_, err := a.client.RbacV1().ClusterRoles().Create(ctx, clusterRole("giver", rules...), create)
	must(t, err)
	_, err = a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "giver"},
		Subjects: []rbacv1.Subject{subject(rbacv1.UserKind, "giver")}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "giver"}}, create)
	must(t, err)
	giver := a.as(t, "giver").RbacV1()
	eventually(t, func() bool {
		_, err := giver.Roles("default").List(ctx, metav1.ListOptions{})
		return err == nil
	}, "giver counts")
	_, err = giver.RoleBindings("default").Create(ctx, bind("all", "ClusterRole", "cluster-admin", subject(rbacv1.UserKind, "ann")), create)
	must(t, err)
	_, err = a.client.RbacV1().Roles("default").Create(ctx, role("mine"), create)
	must(t, err)
	_, err = giver.Roles("default").Update(ctx, role("mine", allow("*", "*", "*")), metav1.UpdateOptions{})
	must(t, err)
	if _, err := giver.Roles("default").Update(ctx, role("other", allow("*", "*", "*")), metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("creating by PUT: %v", err)
	}
	gathering := clusterRole("gathering")
	gathering.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	if _, err := giver.ClusterRoles().Create(ctx, gathering, create); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "must have cluster-admin privileges to use the aggregationRule") {
		t.Errorf("gathering: %v", err)
	}
	// Owners and finalizers, the garbage collector's business, are no grant.
	mine, err := giver.Roles("default").Get(ctx, "mine", metav1.GetOptions{})
	must(t, err)
	_, err = a.client.RbacV1().Roles("default").Create(ctx, role("strong", mine.Rules...), create)
	must(t, err)
	strong, err := giver.Roles("default").Get(ctx, "strong", metav1.GetOptions{})
	must(t, err)
	strong.Finalizers = []string{"example.com/f"}
	if _, err := giver.Roles("default").Update(ctx, strong, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a finalizer: %v", err)
	}
}

func TestImpersonation(t *testing.T) {
	a := startAPI(t)
	a.give(t, "view", "view", subject(rbacv1.GroupKind, "crew"))
	a.give(t, "edit", "edit", subject(rbacv1.UserKind, "boss"))
	who := func(config *rest.Config, as rest.ImpersonationConfig) (authenticationv1.UserInfo, error) {
		config = rest.CopyConfig(config)
		config.Impersonate = as
		client, err := kubernetes.NewForConfig(config)
		must(t, err)
		self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		_, err = client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return self.Status.UserInfo, err
	}
	u, err := who(a.config, rest.ImpersonationConfig{UserName: "eve", Groups: []string{"crew"}, Extra: map[string][]string{"scope": {"x"}}})
	if err != nil || u.Username != "eve" || !slices.Contains(u.Groups, "crew") || slices.Contains(u.Groups, user.SystemPrivilegedGroup) || len(u.Extra["scope"]) != 1 {
		t.Errorf("as eve of the crew: %+v, %v", u, err)
	}
	if _, err := who(a.config, rest.ImpersonationConfig{UserName: "eve"}); !apierrors.IsForbidden(err) {
		t.Errorf("as eve alone: %v", err)
	}
	boss := a.server.ClientConfig(&user.DefaultInfo{Name: "boss", Groups: []string{user.AllAuthenticated}})
	if _, err := who(boss, rest.ImpersonationConfig{UserName: "eve"}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "boss" cannot impersonate`) {
		t.Errorf("by one who may not: %v", err)
	}
	// Who edits a namespace may act as its service accounts.
	if _, err := who(boss, rest.ImpersonationConfig{UserName: "system:serviceaccount:default:robot"}); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "impersonate") {
		t.Errorf("as a service account, who may not list pods: %v", err)
	}
}

// TestBootstrapToken: it authenticates, may ask for certificates and read where the cluster is, and nothing else.
func TestBootstrapToken(t *testing.T) {
	a := startAPI(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:more"},
	}
	_, err := a.client.CoreV1().Secrets("kube-system").Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	client := withToken(t, a, "abcdef.0123456789abcdef")
	var self *authenticationv1.SelfSubjectReview
	eventually(t, func() bool {
		self, err = client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err == nil
	}, "the token is known")
	if u := self.Status.UserInfo; u.Username != "system:bootstrap:abcdef" || !slices.Equal(u.Groups, []string{"system:bootstrappers", "system:bootstrappers:more", "system:authenticated"}) {
		t.Errorf("who: %+v", u)
	}
	if _, err := client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("signing requests: %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{}); err != nil {
		t.Errorf("cluster-info: %v", err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("nodes: %v", err)
	}
	review, err := a.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "abcdef.0123456789abcdef"}}, metav1.CreateOptions{})
	must(t, err)
	if !review.Status.Authenticated || review.Status.User.Username != "system:bootstrap:abcdef" {
		t.Errorf("review: %+v", review.Status)
	}
	if _, err := withToken(t, a, "abcdef.fedcba9876543210").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("another secret: %v", err)
	}
	must(t, a.client.CoreV1().Secrets("kube-system").Delete(t.Context(), secret.Name, metav1.DeleteOptions{}))
	eventually(t, func() bool {
		_, err := client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		return apierrors.IsUnauthorized(err)
	}, "the token is gone")
}

// TestNodeIsRestricted is about what nodes write, through the whole server.
func TestNodeIsRestricted(t *testing.T) {
	a := startAPI(t)
	node := a.as(t, "system:node:n1", user.NodesGroup).CoreV1()
	ctx := t.Context()
	n, err := node.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"kubernetes.io/hostname": "n1", "mine": "x"}}}, metav1.CreateOptions{})
	must(t, err)
	for label, refused := range map[string]bool{"topology.kubernetes.io/zone": false, "node.kubernetes.io/x": false, "example.com/x": false, "node-role.kubernetes.io/control-plane": true, "node-restriction.kubernetes.io/x": true} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"v"}}}`, label)
		if _, err := node.Nodes().Patch(ctx, "n1", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); apierrors.IsForbidden(err) != refused {
			t.Errorf("label %s: %v", label, err)
		}
	}
	if _, err := node.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `node "n1" is not allowed to modify node "n2"`) {
		t.Errorf("another node: %v", err)
	}
	pods := a.client.CoreV1().Pods("default")
	for name, host := range map[string]string{"mine": n.Name, "theirs": "n2"} {
		pod := newPod(name)
		pod.Spec.NodeName = host
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		must(t, err)
	}
	running := []byte(`{"status":{"phase":"Running"}}`)
	for name, refused := range map[string]bool{"mine": false, "theirs": true} {
		_, err := node.Pods("default").Patch(ctx, name, "application/merge-patch+json", running, metav1.PatchOptions{}, "status")
		if apierrors.IsForbidden(err) != refused || !refused && err != nil {
			t.Errorf("status of %s: %v", name, err)
		}
		if err := node.Pods("default").Delete(ctx, name, *metav1.NewDeleteOptions(0)); apierrors.IsForbidden(err) != refused || !refused && err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	if _, err := node.Pods("default").Create(ctx, newPod("own"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "can only create mirror pods") {
		t.Errorf("a pod of its own: %v", err)
	}
}

// TestDefaultPolicyIsThere when the server is ready, and a second server on the same store writes nothing.
func TestDefaultPolicyIsThere(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	a := startOn(t, s, authority)
	versions := func() map[string]string {
		out := map[string]string{}
		roles, err := a.client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, r := range roles.Items {
			out["role "+r.Name] = r.ResourceVersion
			if r.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || len(r.Rules) == 0 || r.UID == "" {
				t.Errorf("%s: %+v", r.Name, r)
			}
		}
		bindings, err := a.client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, b := range bindings.Items {
			out["binding "+b.Name] = b.ResourceVersion
		}
		return out
	}
	before := versions()
	if len(before) < 120 || before["role cluster-admin"] == "" || before["binding system:discovery"] == "" {
		t.Fatalf("%d roles and bindings", len(before))
	}
	for _, namespace := range []string{"kube-system", "kube-public"} {
		roles, err := a.client.RbacV1().Roles(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(roles.Items) == 0 {
			t.Errorf("no roles in %s", namespace)
		}
	}
	startOn(t, s, authority)
	if after := versions(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the second start wrote:\n%v\n%v", before, after)
	}
}
