package join

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// signer is an authority that answers requests for certificates at once.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu       sync.Mutex
	requests []string
}

func newSigner(t *testing.T) *signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t: t, cert: cert, key: key}
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

func (s *signer) sign(request *certificates.CertificateSigningRequest) []byte {
	block, _ := pem.Decode(request.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, fmt.Sprint(request.Spec.SignerName, " ", csr.Subject, " ", csr.DNSNames, " ", csr.IPAddresses))
	usage := x509.ExtKeyUsageClientAuth
	if request.Spec.SignerName == certificates.KubeletServingSignerName {
		usage = x509.ExtKeyUsageServerAuth
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(s.requests) + 1)), Subject: csr.Subject, DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, s.cert, csr.PublicKey, s.key)
	if err != nil {
		s.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// client is an API whose requests are answered at once.
func (s *signer) client(*rest.Config) (kubernetes.Interface, error) {
	api := fake.NewClientset()
	api.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r := action.(clienttesting.CreateAction).GetObject().(*certificates.CertificateSigningRequest)
		r.Name, r.UID = "csr", types.UID("uid")
		r.Status.Certificate = s.sign(r)
		r.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateApproved, Status: "True"}}
		return false, nil, nil
	})
	return api, nil
}

// server is an API server that tells who its clients are.
func (s *signer) server() *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	server.TLS = &tls.Config{ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	return server
}

func TestJoin(t *testing.T) {
	s := newSigner(t)
	server := s.server()
	bootstrap := &rest.Config{
		Host: server.URL, BearerToken: "token",
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}
	cfg := Config{
		Node: "n1", Dir: t.TempDir(), Bootstrap: bootstrap, Names: []string{"n1"}, Addresses: []net.IP{net.IPv4(10, 0, 0, 1)}, NewClient: s.client,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	identity, err := Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, identity); got != "CN=system:node:n1,O=system:nodes" {
		t.Errorf("the API server sees %q", got)
	}
	if config := identity.ClientConfig(); config.BearerToken != "" {
		t.Error("the token is still used")
	}
	serving := awaitServing(ctx, t, identity)
	if serving.Leaf.DNSNames[0] != "n1" || !serving.Leaf.IPAddresses[0].Equal(net.IPv4(10, 0, 0, 1)) {
		t.Errorf("serving certificate for %v %v", serving.Leaf.DNSNames, serving.Leaf.IPAddresses)
	}
	want := []string{
		"kubernetes.io/kube-apiserver-client-kubelet CN=system:node:n1,O=system:nodes [] []",
		"kubernetes.io/kubelet-serving CN=system:node:n1,O=system:nodes [n1] [10.0.0.1]",
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.requests) != fmt.Sprint(want) {
		t.Errorf("requests\n%q\nwant\n%q", s.requests, want)
	}

	// The next start finds what is on disk, and needs no token.
	cfg.NewClient = func(*rest.Config) (kubernetes.Interface, error) { return nil, errors.New("nobody is to be asked") }
	again, err := Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, again); got != "CN=system:node:n1,O=system:nodes" {
		t.Errorf("after a restart the API server sees %q", got)
	}
}

func ask(t *testing.T, i *Identity) string {
	t.Helper()
	config := i.ClientConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	if err := resp.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(text.String(), "\r\n\r\n")
	return body
}

// awaitServing returns the serving certificate when it was issued, which Join doesn't wait for.
func awaitServing(ctx context.Context, t *testing.T, i *Identity) *tls.Certificate {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if c, err := i.GetCertificate(nil); err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			t.Fatal("no serving certificate")
		case <-ticker.C:
		}
	}
}

func TestJoinWithoutAnAnswer(t *testing.T) {
	s := newSigner(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	silent := func(*rest.Config) (kubernetes.Interface, error) {
		cancel(errors.New("the user lost patience"))
		return nil, errors.New("no connection")
	}
	_, err := Join(ctx, Config{Node: "n1", Dir: t.TempDir(), Bootstrap: &rest.Config{Host: s.server().URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.pem()}}, NewClient: silent})
	if err == nil || !strings.Contains(err.Error(), "node n1 has no certificate yet: is its token valid") || !strings.Contains(err.Error(), "the user lost patience") {
		t.Errorf("got %v", err)
	}
	identity := &Identity{}
	if _, err := identity.GetCertificate(nil); err == nil || !strings.Contains(err.Error(), "kubectl get csr") {
		t.Errorf("without a serving certificate: %v", err)
	}
}

func TestJoinRefusesWhatCannotWork(t *testing.T) {
	for want, cfg := range map[string]Config{
		"needs Config.Node, Dir and Bootstrap":                       {},
		"API server http://x: a node speaks to it by https only":     {Node: "n", Dir: t.TempDir(), Bootstrap: &rest.Config{Host: "http://x"}},
		"authority of the API server: open /nowhere/ca.pem: no such": {Node: "n", Dir: t.TempDir(), Bootstrap: &rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere/ca.pem"}}},
	} {
		if _, err := Join(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
