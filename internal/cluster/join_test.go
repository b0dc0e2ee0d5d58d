package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
)

// startAPIOnly starts what `bayplan server` starts.
func startAPIOnly(t *testing.T) (*Cluster, kubernetes.Interface) {
	t.Helper()
	config := local(t)
	config.Controllers, config.NoScheduler = APIControllers(), true
	return start(t, config)
}

// A machine that has a bootstrap token learns from the cluster itself where it is and whom to trust, and can check that it is told the truth.
func TestJoiningMachineLearnsOfTheCluster(t *testing.T) {
	c, client := startAPIOnly(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	token := bootstraptoken.Token{ID: "abcdef", Secret: "0123456789abcdef"}
	_, err := client.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: token.SecretName()}, Type: bootstraptoken.SecretType,
		StringData: map[string]string{"token-id": token.ID, "token-secret": token.Secret, "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	signed(ctx, t, client, token)
	config := rest.AnonymousClientConfig(c.Admin())
	config.BearerToken = token.String()
	info, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("kube-public").Get(ctx, bootstraptoken.ClusterInfo, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := info.Data[bootstraptoken.KubeconfigKey]
	if !token.Verify(told, info.Data[token.SignatureKey()]) {
		t.Errorf("the signature %q is not the token's", info.Data[token.SignatureKey()])
	}
	found, err := clientcmd.RESTConfigFromKubeConfig([]byte(told))
	if err != nil {
		t.Fatal(err)
	}
	if found.Host != c.Admin().Host || string(found.CAData) != string(c.Admin().CAData) {
		t.Errorf("the cluster is said to be at %s, want %s", found.Host, c.Admin().Host)
	}
}

// signed waits until the cluster's description carries the token's signature.
func signed(ctx context.Context, t *testing.T, client kubernetes.Interface, token bootstraptoken.Token) {
	t.Helper()
	w, err := client.CoreV1().ConfigMaps("kube-public").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + bootstraptoken.ClusterInfo})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if info, ok := event.Object.(*corev1.ConfigMap); ok && info.Data[token.SignatureKey()] != "" {
			return
		}
	}
	t.Fatal("the description of the cluster was not signed")
}

func TestExpiredTokenIsCleaned(t *testing.T) {
	_, client := startAPIOnly(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	secrets := client.CoreV1().Secrets("kube-system")
	made, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-old000"}, Type: bootstraptoken.SecretType,
		StringData: map[string]string{"token-id": "old000", "token-secret": "0123456789abcdef", bootstraptoken.ExpirationKey: time.Now().Add(-time.Second).Format(time.RFC3339)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, FieldSelector: "metadata.name=" + made.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Deleted {
			return
		}
	}
	t.Error("the token is still there")
}

// What somebody adds to the roles for people counts for those who have them.
func TestRolesGatherRules(t *testing.T) {
	c, client := startAPIOnly(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := client.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Admin())
	config.Impersonate.UserName = "jane"
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default")
	if _, err := secrets.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("jane may view: secrets: %v", err)
	}
	w, err := client.RbacV1().ClusterRoles().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=view"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "more", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if role, ok := event.Object.(*rbacv1.ClusterRole); ok && gathered(role) {
			awaitAllowed(ctx, t, func() error { _, err := secrets.List(ctx, metav1.ListOptions{}); return err })
			return
		}
	}
	t.Error("role view did not gather the rule")
}

func gathered(role *rbacv1.ClusterRole) bool {
	for _, rule := range role.Rules {
		if rule.Resources[0] == "secrets" {
			return true
		}
	}
	return false
}

// awaitAllowed waits until the authorizer has heard of what is stored.
func awaitAllowed(ctx context.Context, t *testing.T, ask func() error) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	err := ask()
	for apierrors.IsForbidden(err) {
		select {
		case <-ticker.C:
			err = ask()
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAdvertisedAddress(t *testing.T) {
	machine := servingAddresses("192.0.2.7")
	for listens, want := range map[string]string{
		"127.0.0.1:6443": "127.0.0.1:6443", "192.0.2.9:6443": "192.0.2.9:6443", "0.0.0.0:6443": "192.0.2.7:6443", "[::]:6443": "192.0.2.7:6443",
	} {
		if got := advertisedAddress(listens, machine); got != want {
			t.Errorf("%s: %s, want %s", listens, got, want)
		}
	}
	if got := advertisedAddress("0.0.0.0:6443", nil); got != "127.0.0.1:6443" {
		t.Errorf("a machine without a network: %s", got)
	}
}
