package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var issuedAt = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// asked is a request for key and the certificate that a signer would give it, valid for a day.
func asked(t *testing.T, key crypto.Signer) (*podRequest, *x509.Certificate, string) {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: issuedAt, NotAfter: issuedAt.Add(24 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	r := &podRequest{Spec: certificatesv1.PodCertificateRequestSpec{
		SignerName: "a.io/b", PodName: "p", PodUID: "1", ServiceAccountName: "s", ServiceAccountUID: "2", NodeName: "n", NodeUID: "3",
		StubPKCS10Request: der, MaxExpirationSeconds: ptr.To[int32](defaultPodSeconds),
	}}
	return r, template, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestPodCertificateRequest(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key    crypto.Signer
		change func(*certificatesv1.PodCertificateRequestSpec)
		want   string
	}{
		"as a node asks": {},
		"Ed25519":        {key: ed},
		"a weak curve":   {key: newKey(t, elliptic.P224()), want: "key must be one of"},
		"no signer":      {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "" }, want: "spec.signerName: Required"},
		"no pod":         {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "" }, want: "spec.podUID: Required"},
		"too short":      {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.MaxExpirationSeconds = ptr.To[int32](3599) }, want: "must be in the range"},
		"too long":       {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.MaxExpirationSeconds = ptr.To[int32](7862401) }, want: "must be in the range"},
		"no request":     {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.StubPKCS10Request = nil }, want: "spec.stubPKCS10Request: Required"},
		"no DER":         {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.StubPKCS10Request = []byte("x") }, want: "must be a PKCS#10 request"},
		"forged": {change: func(s *certificatesv1.PodCertificateRequestSpec) {
			s.StubPKCS10Request[len(s.StubPKCS10Request)-1] ^= 1
		}, want: "spec.stubPKCS10Request"},
		"plain annotation": {change: func(s *certificatesv1.PodCertificateRequestSpec) {
			s.UnverifiedUserAnnotations = map[string]string{"a": "b"}
		}, want: "domain-prefixed"},
	} {
		if test.key == nil {
			test.key = newKey(t, elliptic.P256())
		}
		r, _, _ := asked(t, test.key)
		if test.change != nil {
			test.change(&r.Spec)
		}
		err := validatePodRequest(r).ToAggregate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func condition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(issuedAt)}
}

func TestPodCertificateStatus(t *testing.T) {
	old, cert, chain := asked(t, newKey(t, elliptic.P256()))
	_, _, foreign := asked(t, newKey(t, elliptic.P256()))
	issued := func() *podRequest {
		r := old.DeepCopy()
		r.Status = certificatesv1.PodCertificateRequestStatus{
			Conditions: []metav1.Condition{condition("Issued")}, CertificateChain: chain,
			NotBefore: &metav1.Time{Time: cert.NotBefore}, NotAfter: &metav1.Time{Time: cert.NotAfter}, BeginRefreshAt: &metav1.Time{Time: cert.NotBefore.Add(12 * time.Hour)},
		}
		return r
	}
	if errs := validatePodRequestStatus(issued(), old); len(errs) > 0 {
		t.Fatalf("what a signer gives: %v", errs)
	}
	for name, test := range map[string]struct {
		change func(*podRequest)
		want   string
	}{
		"no time":           {func(r *podRequest) { r.Status.NotAfter = nil }, "status.notAfter: Required"},
		"another time":      {func(r *podRequest) { r.Status.NotAfter.Time = issuedAt }, "must be the NotAfter"},
		"refreshed at once": {func(r *podRequest) { r.Status.BeginRefreshAt.Time = issuedAt.Add(time.Minute) }, "10 minutes after"},
		"another key":       {func(r *podRequest) { r.Status.CertificateChain = foreign }, "not issued to the requested public key"},
		"longer than asked": {func(r *podRequest) { r.Spec.MaxExpirationSeconds = ptr.To[int32](3600) }, "lifetime"},
		"two decisions":     {func(r *podRequest) { r.Status.Conditions = append(r.Status.Conditions, condition("Denied")) }, "at most one"},
		"undecided":         {func(r *podRequest) { r.Status.Conditions = nil }, "only together with the condition Issued"},
		"half decided":      {func(r *podRequest) { r.Status.Conditions[0].Status = metav1.ConditionFalse }, "Unsupported value"},
	} {
		r := issued()
		test.change(r)
		if err := validatePodRequestStatus(r, old).ToAggregate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	denied := old.DeepCopy()
	denied.Status.Conditions = []metav1.Condition{condition("Denied")}
	if errs := validatePodRequestStatus(denied, old); len(errs) > 0 {
		t.Errorf("denied: %v", errs)
	}
	if err := validatePodRequestStatus(issued(), denied).ToAggregate(); err == nil || !strings.Contains(err.Error(), "immutable after the request was Denied") {
		t.Errorf("issued after it was denied: %v", err)
	}
}
