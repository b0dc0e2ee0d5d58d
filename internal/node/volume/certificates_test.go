package volume

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func block(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func bundle(name, signer, tier string, certs ...string) *certificates.ClusterTrustBundle {
	b := &certificates.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	b.Spec.SignerName = signer
	for _, c := range certs {
		b.Spec.TrustBundle += "comment\n" + block(c)
	}
	return b
}

func TestTrustBundles(t *testing.T) {
	f := newFixture(t, bundle("one", "", "", "b", "a", "b"), bundle("x:1", "x", "blue", "a"), bundle("x:2", "x", "red", "b"), bundle("y:1", "y", "blue", "c"))
	for source, want := range map[string]string{
		"name: one":                        block("a") + block("b"),
		"signerName: x, labelSelector: {}": block("a") + block("b"),
		"signerName: x, labelSelector: {matchLabels: {tier: red}}":                  block("b"),
		"signerName: x, labelSelector: {matchLabels: {tier: none}}, optional: true": "",
		"signerName: x, optional: true":                                             "",
		"name: none, optional: true":                                                "",
		"name: none":                                                                `error: clustertrustbundle "none" not found`,
		"signerName: x":                                                             `error: combination of signerName "x" and labelSelector matched zero ClusterTrustBundles`,
		"signerName: z, labelSelector: {}":                                          `error: combination of signerName "z" and labelSelector matched zero ClusterTrustBundles`,
	} {
		pod := f.pod(`{containers: [{name: c}], volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {path: ca.pem, ` + source + `}}]}}]}`)
		err := f.SetUp(t.Context(), pod)
		if text, failing := strings.CutPrefix(want, "error: "); failing {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", source, err, text)
			}
			continue
		}
		got, readErr := os.ReadFile(filepath.Join(f.dir("u", &pod.Spec.Volumes[0]), "ca.pem"))
		if err != nil || readErr != nil || string(got) != want {
			t.Errorf("%s: %q, %v, %v, want %q", source, got, err, readErr, want)
		}
	}
}

// signed answers the only open request as a signer would.
func (f *fixture) signed(chain string, refresh time.Duration) {
	f.t.Helper()
	requests := f.api.CertificatesV1().PodCertificateRequests("ns")
	list, err := requests.List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range list.Items {
		if len(r.Status.Conditions) > 0 {
			continue
		}
		at := metav1.NewTime(f.clock.Now().Add(refresh))
		r.Status.CertificateChain, r.Status.BeginRefreshAt = chain, &at
		r.Status.Conditions = []metav1.Condition{{Type: certificates.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue}}
		if _, err := requests.Update(f.t.Context(), &r, metav1.UpdateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) nameRequests() {
	made := 0
	f.api.PrependReactor("create", "podcertificaterequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made++
		action.(clienttesting.CreateAction).GetObject().(*certificates.PodCertificateRequest).Name = fmt.Sprint("request-", made)
		return false, nil, nil
	})
}

func TestPodCertificate(t *testing.T) {
	f := newFixture(t,
		&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns", UID: "sa-uid"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}})
	f.nameRequests()
	pod := f.pod(`
nodeName: n1
serviceAccountName: sa
containers: [{name: c}]
volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: example.com/s, keyType: ECDSAP256, maxExpirationSeconds: 3600, credentialBundlePath: all.pem, keyPath: key.pem, certificateChainPath: chain.pem, userAnnotations: {example.com/a: b}}}]}}]
`)
	if err := f.SetUp(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "podcertificaterequest request-1 has not been answered by signer example.com/s yet") {
		t.Fatalf("before it is issued: %v", err)
	}
	request, err := f.api.CertificatesV1().PodCertificateRequests("ns").Get(t.Context(), "request-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := request.Spec
	if s.PodUID != "u" || s.ServiceAccountUID != "sa-uid" || s.NodeUID != "node-uid" || *s.MaxExpirationSeconds != 3600 || s.UnverifiedUserAnnotations["example.com/a"] != "b" {
		t.Errorf("request %+v", s)
	}
	csr, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
	if err != nil || csr.CheckSignature() != nil {
		t.Errorf("the request doesn't prove who has the key: %v", err)
	}
	f.signed("noise\n"+block("leaf"), time.Hour)
	f.setUp(pod)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(f.dir("u", &pod.Spec.Volumes[0]), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	key := read("key.pem")
	if read("chain.pem") != block("leaf") || read("all.pem") != key+block("leaf") || !strings.HasPrefix(key, "-----BEGIN PRIVATE KEY-----") {
		t.Errorf("files %q, %q, %q", key, read("chain.pem"), read("all.pem"))
	}
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.setUp(pod) // asks anew, and keeps the old one
	if read("key.pem") != key {
		t.Error("the key changed before there is a certificate for it")
	}
	f.signed(block("next"), time.Hour)
	f.setUp(pod)
	if read("key.pem") == key || read("chain.pem") != block("next") {
		t.Error("the certificate was not renewed")
	}
}

func TestPodCertificateDenied(t *testing.T) {
	f := newFixture(t, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	f.nameRequests()
	pod := f.pod(`{nodeName: n1, serviceAccountName: sa, containers: [{name: c}], volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s, keyType: ED25519, keyPath: k}}]}}]}`)
	_ = f.SetUp(t.Context(), pod) // asks
	request, err := f.api.CertificatesV1().PodCertificateRequests("ns").Get(t.Context(), "request-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []metav1.Condition{{Type: "Denied", Status: metav1.ConditionTrue, Reason: "UnsupportedKeyType", Message: "use ECDSAP256"}}
	if _, err := f.api.CertificatesV1().PodCertificateRequests("ns").Update(t.Context(), request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetUp(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "Denied: UnsupportedKeyType: use ECDSAP256") {
		t.Errorf("got %v", err)
	}
}

func TestKeyTypes(t *testing.T) {
	for _, keyType := range []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"} {
		if _, csr, err := keyAndRequest(keyType); err != nil || len(csr) == 0 {
			t.Errorf("%s: %v", keyType, err)
		}
	}
	if _, _, err := keyAndRequest("DSA"); err == nil {
		t.Error("DSA was taken")
	}
}
