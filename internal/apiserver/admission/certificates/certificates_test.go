package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allowed is an authorizer that allows one verb on one name of signers: "sign a.io/b".
type allowed string

func (w allowed) Authorize(_ context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
	if q.GetAPIGroup() != "certificates.k8s.io" || q.GetResource() != "signers" || q.GetUser().GetName() != "u" {
		return authorizer.DecisionNoOpinion, "", errors.New("not what a signer is asked about with")
	}
	if q.GetVerb()+" "+q.GetName() == string(w) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// attempt is a write and what comes of it: "" is admitted, else a part of the refusal.
type attempt struct {
	name     string
	may      allowed
	resource string // RESOURCE[/SUB]
	obj, old runtime.Object
	want     string
}

func (a attempt) run(t *testing.T) {
	t.Helper()
	operation := admission.Create
	if a.old != nil {
		operation = admission.Update
	}
	name, sub, _ := strings.Cut(a.resource, "/")
	record := admission.NewAttributesRecord(a.obj, a.old, schema.GroupVersionKind{}, "", "x", schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: name},
		sub, operation, nil, false, &user.DefaultInfo{Name: "u"})
	err := chain(t, a.may).Validate(t.Context(), record, nil)
	if (err == nil) != (a.want == "") || err != nil && !strings.Contains(err.Error(), a.want) {
		t.Errorf("%s: %v, want %q", a.name, err, a.want)
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("%s: %v is no refusal", a.name, err)
	}
}

func chain(t *testing.T, may allowed) admission.ValidationInterface {
	t.Helper()
	var plugins []admission.Interface
	for _, name := range []string{Approval, Signing, Attest, SubjectRestriction} {
		plugin, err := New(name, func() authorizer.UnconditionalAuthorizer { return may })
		if err != nil {
			t.Fatal(err)
		}
		plugins = append(plugins, plugin)
	}
	return admission.NewChainHandler(plugins...)
}

func request(change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "a.io/b"}}
	if change != nil {
		change(r)
	}
	return r
}

func decided(r *certificatesv1.CertificateSigningRequest) {
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
}

func signed(r *certificatesv1.CertificateSigningRequest) {
	r.Status.Certificate = []byte("certificate")
}

func TestSigningRequests(t *testing.T) {
	const approval, status = "certificatesigningrequests/approval", "certificatesigningrequests/status"
	// The signer that counts is the one that was asked.
	elsewhere := request(func(r *certificatesv1.CertificateSigningRequest) { decided(r); signed(r); r.Spec.SignerName = "c.io/d" })
	for _, a := range []attempt{
		{name: "approve", may: "approve a.io/b", resource: approval, obj: request(decided), old: request(nil)},
		{name: "approve all of a domain", may: "approve a.io/*", resource: approval, obj: request(decided), old: request(nil)},
		{name: "approve for another", may: "approve a.io/c", resource: approval, obj: request(decided), old: request(nil), want: `user not permitted to approve requests with signerName "a.io/b"`},
		{name: "approve as signer", may: "sign a.io/b", resource: approval, obj: request(decided), old: request(nil), want: "not permitted to approve"},
		{name: "approve elsewhere", may: "approve c.io/d", resource: approval, obj: elsewhere, old: request(nil), want: "not permitted to approve"},
		{name: "sign", may: "sign a.io/b", resource: status, obj: request(signed), old: request(decided)},
		{name: "sign all of a domain", may: "sign a.io/*", resource: status, obj: request(signed), old: request(decided)},
		{name: "sign all", may: "sign */*", resource: status, obj: request(signed), old: request(decided), want: `user not permitted to sign requests with signerName "a.io/b"`},
		{name: "sign as approver", may: "approve a.io/b", resource: status, obj: request(signed), old: request(nil), want: "not permitted to sign"},
		{name: "sign elsewhere", may: "sign c.io/d", resource: status, obj: elsewhere, old: request(nil), want: "not permitted to sign"},
		{name: "say that it failed", may: "", resource: status, obj: request(decided), old: request(nil), want: "not permitted to sign"},
		{name: "change nothing of the outcome", may: "", resource: status, obj: request(func(r *certificatesv1.CertificateSigningRequest) { r.Labels = map[string]string{"a": "b"} }), old: request(nil)},
		{name: "the request itself", may: "", resource: "certificatesigningrequests", obj: request(decided), old: request(nil)},
		{name: "of a wrong type", may: "approve a.io/b", resource: approval, obj: &corev1.Pod{}, old: request(nil), want: "expected type *v1.CertificateSigningRequest, got: *v1.Pod"},
		{name: "from a wrong type", may: "approve a.io/b", resource: approval, obj: request(nil), old: &corev1.Pod{}, want: "expected type *v1.CertificateSigningRequest, got: *v1.Pod"},
	} {
		a.run(t)
	}
}

func TestSubject(t *testing.T) {
	for _, a := range []attempt{
		{name: "a person", obj: asking(t, certificatesv1.KubeAPIServerClientSignerName, "crew")},
		{name: "a master", obj: asking(t, certificatesv1.KubeAPIServerClientSignerName, "crew", "system:masters"),
			want: "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
		{name: "a master elsewhere", obj: asking(t, "a.io/b", "system:masters")},
		{name: "no request", obj: request(func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}),
			want: "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"},
	} {
		a.resource = "certificatesigningrequests"
		a.run(t)
	}
}

func asking(t *testing.T, signer string, groups ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "u", Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return request(func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.SignerName, r.Spec.Request = signer, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	})
}

func TestPodRequests(t *testing.T) {
	pod := func(chain string) *certificatesv1.PodCertificateRequest {
		return &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: certificatesv1.PodCertificateRequestSpec{SignerName: "a.io/b"},
			Status: certificatesv1.PodCertificateRequestStatus{CertificateChain: chain}}
	}
	for _, a := range []attempt{
		{name: "sign", may: "sign a.io/b", obj: pod("c"), old: pod("")},
		{name: "sign for another", may: "sign a.io/c", obj: pod("c"), old: pod(""),
			want: `PodCertificateRequest.certificates.k8s.io "x" is invalid: spec.signerName: Forbidden: User "u" is not permitted to "sign" for signer "a.io/b"`},
		{name: "change nothing", may: "", obj: pod("c"), old: pod("c")},
	} {
		a.resource = "podcertificaterequests/status"
		a.run(t)
	}
}

func TestTrustBundles(t *testing.T) {
	bundle := func(signer, text string, finalizers ...string) *certificatesv1.ClusterTrustBundle {
		return &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "x", Finalizers: finalizers},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
	}
	for _, a := range []attempt{
		{name: "vouch", may: "attest a.io/b", obj: bundle("a.io/b", "t")},
		{name: "vouch for all of a domain", may: "attest a.io/*", obj: bundle("a.io/b", "t")},
		{name: "vouch for another", may: "attest a.io/c", obj: bundle("a.io/b", "t"), want: `user not permitted to attest for signerName "a.io/b"`},
		{name: "vouch anew for another", may: "attest a.io/c", obj: bundle("a.io/b", "t2"), old: bundle("a.io/b", "t"), want: "not permitted to attest"},
		{name: "let a bundle go", may: "", obj: bundle("a.io/b", "t"), old: bundle("a.io/b", "t", "f")},
		{name: "a bundle of nobody", may: "", obj: bundle("", "t")},
	} {
		a.resource = "clustertrustbundles"
		a.run(t)
	}
}
