package csrsigning

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// The certificate says what was asked for and nothing more, lasts as long as it should, and the authority vouches for it.
func TestCertificates(t *testing.T) {
	for name, test := range map[string]struct {
		seconds    *int32
		signer     string
		usages     []certificatesv1.KeyUsage
		start, end time.Duration // from now
	}{
		"a year by default":      {nil, certificatesv1.KubeletServingSignerName, serving(), -backdate, longest - backdate},
		"an hour":                {ptr.To[int32](3600), certificatesv1.KubeletServingSignerName, serving(), -backdate, time.Hour},
		"a day":                  {ptr.To[int32](86400), certificatesv1.KubeletServingSignerName, serving(), -backdate, 24*time.Hour - backdate},
		"never under 10 minutes": {ptr.To[int32](60), certificatesv1.KubeletServingSignerName, serving(), -backdate, 10 * time.Minute},
		"never over a year":      {ptr.To[int32](1 << 30), certificatesv1.KubeletServingSignerName, serving(), -backdate, longest - backdate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := controllertest.NewAuthority()
				c := &Controller{clock: clock.RealClock{}, authority: authority}
				asked, request := request(t, test.signer, test.usages, test.seconds)
				text, err := c.certificate(request, asked)
				if err != nil {
					t.Fatal(err)
				}
				check(t, text, authority.Cert, test.start, test.end)
			})
		})
	}
}

func serving() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
}

func request(t *testing.T, signer string, usages []certificatesv1.KeyUsage, seconds *int32) (*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
		DNSNames: []string{"n1"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return asked, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Usages: usages, ExpirationSeconds: seconds, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

func check(t *testing.T, text []byte, authority *x509.Certificate, start, end time.Duration) {
	t.Helper()
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := [2]time.Duration{time.Until(cert.NotBefore), time.Until(cert.NotAfter)}; got != [2]time.Duration{start, end} {
		t.Errorf("from %v to %v, want from %v to %v", got[0], got[1], start, end)
	}
	if cert.Subject.CommonName != "system:node:n1" || !slices.Equal(cert.DNSNames, []string{"n1"}) || cert.IsCA || cert.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("the certificate says %v %v, CA %v, usage %v", cert.Subject, cert.DNSNames, cert.IsCA, cert.KeyUsage)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "10.0.0.1", CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Error(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the certificate is good for a client too, which nobody asked for")
	}
}

// An approved request ends up with its certificate.
func TestIssued(t *testing.T) {
	controllertest.Bubble(t, func(t *testing.T, e *controllertest.Env) {
		_, r := request(t, certificatesv1.KubeletServingSignerName, serving(), nil)
		client := e.Client.CertificatesV1().CertificateSigningRequests()
		made, err := client.Create(e.Context(), r, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.Settle()
		made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		if _, err := client.UpdateApproval(e.Context(), made.Name, made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.Settle()
		got, err := client.Get(e.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if block, _ := pem.Decode(got.Status.Certificate); block == nil {
			t.Fatalf("status.certificate is %q", got.Status.Certificate)
		}
	}, New)
}

// Every usage that the API knows has its bit.
func TestUsages(t *testing.T) {
	for usage := range keyUsages {
		var template x509.Certificate
		if err := setUsages(&template, []certificatesv1.KeyUsage{usage}); err != nil || template.KeyUsage == 0 {
			t.Errorf("%s: %v, %v", usage, template.KeyUsage, err)
		}
	}
	if err := setUsages(&x509.Certificate{}, []certificatesv1.KeyUsage{"flying"}); err == nil {
		t.Error("an unknown usage is taken")
	}
}
