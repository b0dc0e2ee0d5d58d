package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A certificate that somebody asked for and an administrator approved is one with which they can use the API.
func TestSigningRequest(t *testing.T) {
	c, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, key := signingRequest(t, "jane", certificatesv1.KubeAPIServerClientSignerName)
	requests := client.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Known", Message: "we know Jane",
	}}
	if _, err := requests.UpdateApproval(ctx, made.Name, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Admin())
	config.CertData, config.KeyData = issued(ctx, t, client, made.Name), key
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane"`) {
		t.Errorf("the holder of the certificate is told %v, want to be refused as jane", err)
	}
}

// signingRequest asks for a client certificate; key is its key in PEM.
func signingRequest(t *testing.T, user, signer string, groups ...string) (request *certificatesv1.CertificateSigningRequest, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "request-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: asked}),
		},
	}, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

// issued waits for the certificate of a request.
func issued(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) []byte {
	t.Helper()
	w, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if r, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && len(r.Status.Certificate) > 0 {
			return r.Status.Certificate
		}
	}
	t.Fatalf("no certificate was issued for request %s", name)
	return nil
}
