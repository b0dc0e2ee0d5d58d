package apiserver_test

import (
	"context"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver"
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

const storeTimeout = 30 * time.Second

// api is an API server of a test, on a store of its own.
type api struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	server  *apiserver.Server
	store   *store.Store
}

// startAPI starts an API server that ends with the test.
func startAPI(t testing.TB, changes ...func(*apiserver.Config)) *api {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	return startOn(t, s, authority, changes...)
}

// startOn starts one more server on a store. changes are made to its configuration.
func startOn(t testing.TB, s *store.Store, authority *pki.Authority, changes ...func(*apiserver.Config)) *api {
	t.Helper()
	serving, err := authority.Identity("apiserver", pki.Request{User: "kube-apiserver", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	must(t, err)
	node, err := authority.Identity("node-client", pki.Request{User: "kube-apiserver-kubelet-client"})
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	config := apiserver.Config{
		Store: s, Authority: authority, Serving: serving, NodeClient: node, Listeners: []net.Listener{listener}, Dial: (&net.Dialer{}).DialContext,
	}
	for _, change := range changes {
		change(&config)
	}
	server, err := apiserver.New(config)
	must(t, err)
	run(t, server)
	a := &api{server: server, store: s}
	a.config = server.ClientConfig(&user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}})
	a.config.ContentType, a.config.AcceptContentTypes = "", ""
	a.client, err = kubernetes.NewForConfig(a.config)
	must(t, err)
	a.dynamic, err = dynamic.NewForConfig(a.config)
	must(t, err)
	a.makeAccount(t, "default")
	return a
}

// makeAccount makes the account of a namespace that its pods run as, which a controller does in a whole cluster.
func (a *api) makeAccount(t testing.TB, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := a.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
}

func run(t testing.TB, server *apiserver.Server) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the server did not start: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
