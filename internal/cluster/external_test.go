package cluster

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// externalEtcd runs a real etcd server on loopback, over TLS, which asks its clients for certificates.
func externalEtcd(t *testing.T) store.External {
	t.Helper()
	dir := t.TempDir()
	authority, err := pki.Open(dir, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Identity("etcd", pki.Request{User: "etcd", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Identity("client", pki.Request{User: "client"}); err != nil {
		t.Fatal(err)
	}
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.LogOutputs = t.TempDir(), "fatal", []string{"/dev/null"}
	config.ListenPeerUrls = nil
	config.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	config.ClientTLSInfo = transport.TLSInfo{
		CertFile: filepath.Join(dir, "etcd.crt"), KeyFile: filepath.Join(dir, "etcd.key"), TrustedCAFile: filepath.Join(dir, "ca.crt"), ClientCertAuth: true,
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	return store.External{
		Endpoints: []string{"https://" + server.Clients[0].Addr().String()},
		CAFile:    filepath.Join(dir, "ca.crt"), CertFile: filepath.Join(dir, "client.crt"), KeyFile: filepath.Join(dir, "client.key"),
	}
}

// TestTwoServersOnOneEtcd: two servers start at the same moment on an empty etcd and an empty directory for keys. What one writes the other serves and tells its watchers; credentials of one are good for the other; controllers run once, and go on
// when the server that ran them stops.
func TestTwoServersOnOneEtcd(t *testing.T) {
	etcd, keys := externalEtcd(t), t.TempDir()
	var servers [2]*Cluster
	var starting sync.WaitGroup
	for i := range servers {
		config := local(t)
		config.Etcd, config.PKIDir, config.Controllers, config.NoScheduler = etcd, keys, APIControllers(), true
		starting.Go(func() {
			var err error
			if servers[i], err = Start(t.Context(), config); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	for _, s := range servers {
		if s == nil {
			return
		}
		t.Cleanup(func() {
			if err := s.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	first, second := servers[0], servers[1]
	a, b := kubernetes.NewForConfigOrDie(first.Admin()), kubernetes.NewForConfigOrDie(second.Admin())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	awaitAccount(ctx, t, b, "default")

	watch, err := b.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=shared"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	made, err := a.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-watch.ResultChan(); event.Object.(*corev1.ConfigMap).UID != made.UID {
		t.Errorf("the other server's watcher sees %+v", event)
	}
	stale := made.DeepCopy()
	made.Data = map[string]string{"by": "b"}
	if _, err := b.CoreV1().ConfigMaps("default").Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CoreV1().ConfigMaps("default").Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale write through the other server: %v, want a conflict", err)
	}
	crossed := first.Admin()
	crossed.Host = second.Admin().Host
	if _, err := kubernetes.NewForConfigOrDie(crossed).CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("the first server's administrator at the second: %v", err)
	}
	if err := first.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAccount(ctx, t, b, "after")
}

// awaitAccount returns when the namespace has its default ServiceAccount, which a controller makes.
func awaitAccount(ctx context.Context, t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	w, err := client.CoreV1().ServiceAccounts(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range w.ResultChan() {
		return
	}
	t.Fatalf("namespace %s got no ServiceAccount", namespace)
}

func TestExternalEtcdThatDoesNotAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	config := local(t)
	config.DataDir = filepath.Join(config.DataDir, "new")
	config.Etcd = store.External{Endpoints: []string{"http://127.0.0.1:1"}}
	_, err := Start(ctx, config)
	wantError(t, err, "127.0.0.1:1", "--etcd-endpoints")
	wantAbsent(t, config.DataDir)
}
