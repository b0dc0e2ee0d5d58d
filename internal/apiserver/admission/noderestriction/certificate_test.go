package noderestriction

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

func signingRequest(t *testing.T, signer, name string) *certificatesv1.CertificateSigningRequest {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}}
}

func TestSigningRequests(t *testing.T) {
	broken := signingRequest(t, certificatesv1.KubeletServingSignerName, "x")
	broken.Spec.Request = []byte("x")
	for _, a := range []attempt{
		{name: "its own", obj: signingRequest(t, certificatesv1.KubeAPIServerClientKubeletSignerName, "system:node:n1")},
		{name: "another's", obj: signingRequest(t, certificatesv1.KubeAPIServerClientKubeletSignerName, "system:node:n2"), want: "can only create a node CSR with CN=system:node:n1"},
		{name: "another's for serving", obj: signingRequest(t, certificatesv1.KubeletServingSignerName, "admin"), want: "can only create a node CSR"},
		{name: "of another signer", obj: signingRequest(t, "example.com/x", "anything")},
		{name: "broken", obj: broken, want: "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"},
	} {
		a.resource, a.operation = "certificatesigningrequests.certificates.k8s.io", admission.Create
		a.run(t, plugin(), node1)
	}
}

func TestPodCertificates(t *testing.T) {
	pod := podOn("n1", "mine")
	pod.Spec.ServiceAccountName = "account"
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "a.b/c"}})}}
	theirs, static := podOn("n2", "theirs"), podOn("n1", "static")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	p := plugin(pod, theirs, static, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-n1"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "account", UID: "uid-account"}})
	request := func(change func(*certificatesv1.PodCertificateRequestSpec)) *certificatesv1.PodCertificateRequest {
		r := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "a.b/c", PodName: "mine", PodUID: "uid-mine", ServiceAccountName: "account", ServiceAccountUID: "uid-account", NodeName: "n1", NodeUID: "uid-n1"}}
		change(&r.Spec)
		return r
	}
	type spec = certificatesv1.PodCertificateRequestSpec
	for name, c := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"good":            {func(*spec) {}, ""},
		"another node":    {func(s *spec) { s.NodeName = "n2" }, "which is not the requesting node"},
		"a former node":   {func(s *spec) { s.NodeUID = "old" }, "inconsistent with the running node"},
		"no pod":          {func(s *spec) { s.PodName = "none" }, "not found"},
		"a former pod":    {func(s *spec) { s.PodUID = "old" }, "differs from running pod"},
		"theirs":          {func(s *spec) { s.PodName, s.PodUID = "theirs", "uid-theirs" }, "is not running on node"},
		"a mirror pod":    {func(s *spec) { s.PodName, s.PodUID = "static", "uid-static" }, "is a mirror pod"},
		"another account": {func(s *spec) { s.ServiceAccountName = "other" }, "that differs from running pod"},
		"former account":  {func(s *spec) { s.ServiceAccountUID = "old" }, "differs from the running service account"},
		"another signer":  {func(s *spec) { s.SignerName = "x.y/z" }, `does not mount a podCertificate projected volume for signer "x.y/z"`},
	} {
		attempt{name: name, resource: "podcertificaterequests.certificates.k8s.io", operation: admission.Create, obj: request(c.change), want: c.want}.run(t, p, node1)
	}
}
