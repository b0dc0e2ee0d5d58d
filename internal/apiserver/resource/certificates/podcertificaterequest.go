package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

type podRequest = certificatesv1.PodCertificateRequest

// How long a pod's certificate may and must be good for (KEP-4317).
const (
	defaultPodSeconds  = 86400
	shortestPodSeconds = 3600
	longestPodSeconds  = 7862400
)

// podDecisions are the conditions of which a request has at most one, for ever.
var podDecisions = []string{
	certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed,
}

func podCertificateRequest() *resource.Kind[*podRequest] {
	return &resource.Kind[*podRequest]{
		Resource:   "podcertificaterequests",
		HasStatus:  true,
		Generation: true,
		New:        func() *podRequest { return &podRequest{} },
		NewList:    func() runtime.Object { return &certificatesv1.PodCertificateRequestList{} },
		Default: func(r *podRequest) {
			if r.Spec.MaxExpirationSeconds == nil {
				r.Spec.MaxExpirationSeconds = ptr.To[int32](defaultPodSeconds)
			}
		},
		PrepareStatus: func(_ context.Context, r, old *podRequest) { r.Spec = old.Spec },
		Validate:      validatePodRequest,
		ValidateUpdate: func(r, old *podRequest) field.ErrorList {
			return rules.Unchanged(r.Spec, old.Spec, spec)
		},
		ValidateStatus: validatePodRequestStatus,
		Fields: map[string]func(*podRequest) string{
			"spec.signerName": func(r *podRequest) string { return r.Spec.SignerName },
			"spec.podName":    func(r *podRequest) string { return r.Spec.PodName },
			"spec.nodeName":   func(r *podRequest) string { return string(r.Spec.NodeName) },
		},
		Columns: []resource.Column[*podRequest]{
			{Name: "PodName", Description: "The pod that the certificate is for.", Value: func(r *podRequest) any { return r.Spec.PodName }},
			{Name: "ServiceAccountName", Description: "The pod's service account.", Value: func(r *podRequest) any { return r.Spec.ServiceAccountName }},
			{Name: "NodeName", Description: "The pod's node.", Value: func(r *podRequest) any { return string(r.Spec.NodeName) }},
			{Name: "SignerName", Description: "Who is asked to sign.", Value: func(r *podRequest) any { return r.Spec.SignerName }},
			{Name: "State", Description: "What came of it.", Value: func(r *podRequest) any { return podState(r) }},
			resource.Age[*podRequest](),
		},
	}
}

func podState(r *podRequest) string {
	for _, c := range r.Status.Conditions {
		if slices.Contains(podDecisions, c.Type) && c.Status == metav1.ConditionTrue {
			return c.Type
		}
	}
	return "Pending"
}

func validatePodRequest(r *podRequest) field.ErrorList {
	errs := validateSigner(r.Spec.SignerName, spec.Child("signerName"))
	errs = append(errs, rules.Subdomain(r.Spec.PodName, spec.Child("podName"))...)
	errs = append(errs, rules.Required(r.Spec.PodUID, spec.Child("podUID"))...)
	errs = append(errs, rules.Subdomain(r.Spec.ServiceAccountName, spec.Child("serviceAccountName"))...)
	errs = append(errs, rules.Required(r.Spec.ServiceAccountUID, spec.Child("serviceAccountUID"))...)
	errs = append(errs, rules.Subdomain(string(r.Spec.NodeName), spec.Child("nodeName"))...)
	errs = append(errs, rules.Required(r.Spec.NodeUID, spec.Child("nodeUID"))...)
	path := spec.Child("maxExpirationSeconds")
	switch seconds := ptr.Deref(r.Spec.MaxExpirationSeconds, defaultPodSeconds); {
	case seconds < shortestPodSeconds:
		errs = append(errs, field.Invalid(path, seconds, fmt.Sprintf("must be in the range [%d, %d]", shortestPodSeconds, longestPodSeconds)))
	case seconds > longestPodSeconds:
		errs = append(errs, field.Invalid(path, seconds, fmt.Sprintf("must be in the range [%d, %d]", shortestPodSeconds, longestPodSeconds)))
	}
	for key := range r.Spec.UnverifiedUserAnnotations {
		errs = append(errs, domainPrefixed(key, spec.Child("unverifiedUserAnnotations").Key(key))...)
	}
	return append(errs, validateStub(r.Spec.StubPKCS10Request, spec.Child("stubPKCS10Request"))...)
}

func domainPrefixed(key string, path *field.Path) field.ErrorList {
	errs := rules.Qualified(key, path)
	if len(errs) == 0 && !bytes.ContainsRune([]byte(key), '/') {
		errs = append(errs, field.Invalid(path, key, "must be a domain-prefixed key (such as \"acme.io/foo\")"))
	}
	return errs
}

// validateStub wants a request in DER whose signature proves that the node holds the key.
func validateStub(der []byte, path *field.Path) field.ErrorList {
	if len(der) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be a PKCS#10 request in DER: %v", err))}
	}
	if err := parsed.CheckSignature(); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "signature does not verify under the public key of the request")}
	}
	if !allowedKey(parsed.PublicKey) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "key must be one of RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521, ED25519")}
	}
	return nil
}

func allowedKey(key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return k.Size()*8 == 3072 || k.Size()*8 == 4096
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return true
	}
	return false
}

// validatePodRequestStatus: one decision, which stays, and a certificate that fits it.
func validatePodRequestStatus(r, old *podRequest) field.ErrorList {
	status := field.NewPath("status")
	errs := rules.Conditions(r.Status.Conditions, status.Child("conditions"))
	decided := ""
	for i, c := range r.Status.Conditions {
		path := status.Child("conditions").Index(i)
		if !slices.Contains(podDecisions, c.Type) {
			continue
		}
		if c.Status != metav1.ConditionTrue {
			errs = append(errs, field.NotSupported(path.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
		}
		if decided != "" {
			errs = append(errs, field.Invalid(path.Child("type"), c.Type, "there may be at most one condition of the types Issued, Denied and Failed"))
		}
		decided = c.Type
	}
	if former := podState(old); former != "Pending" && (former != decided || !apiequality.Semantic.DeepEqual(r.Status, old.Status)) {
		return append(errs, field.Invalid(status, field.OmitValueType{}, "immutable after the request was "+former))
	}
	return append(errs, validateIssued(r, decided, status)...)
}

func validateIssued(r *podRequest, decided string, status *field.Path) field.ErrorList {
	given := r.Status.CertificateChain != "" || r.Status.NotBefore != nil || r.Status.NotAfter != nil || r.Status.BeginRefreshAt != nil
	if decided != certificatesv1.PodCertificateRequestConditionTypeIssued {
		if given {
			return field.ErrorList{field.Invalid(status.Child("certificateChain"), field.OmitValueType{}, "certificate and times may be set only together with the condition Issued")}
		}
		return nil
	}
	errs := validateChain([]byte(r.Status.CertificateChain), status.Child("certificateChain"))
	for name, t := range map[string]*metav1.Time{"notBefore": r.Status.NotBefore, "notAfter": r.Status.NotAfter, "beginRefreshAt": r.Status.BeginRefreshAt} {
		if t == nil {
			errs = append(errs, field.Required(status.Child(name), "must be set together with certificateChain"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	block, _ := pem.Decode([]byte(r.Status.CertificateChain))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return field.ErrorList{field.Invalid(status.Child("certificateChain"), field.OmitValueType{}, err.Error())}
	}
	return validateLeaf(r, leaf, status)
}

// validateLeaf compares the certificate with what was asked for and with what the status says of it.
func validateLeaf(r *podRequest, leaf *x509.Certificate, status *field.Path) field.ErrorList {
	var errs field.ErrorList
	if parsed, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request); err == nil && !sameKey(leaf.PublicKey, parsed.PublicKey) {
		errs = append(errs, field.Invalid(status.Child("certificateChain"), field.OmitValueType{}, "leaf certificate was not issued to the requested public key"))
	}
	if !r.Status.NotBefore.Time.Equal(leaf.NotBefore) {
		errs = append(errs, field.Invalid(status.Child("notBefore"), r.Status.NotBefore, "must be the NotBefore of the leaf certificate"))
	}
	if !r.Status.NotAfter.Time.Equal(leaf.NotAfter) {
		errs = append(errs, field.Invalid(status.Child("notAfter"), r.Status.NotAfter, "must be the NotAfter of the leaf certificate"))
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	if life < shortestPodSeconds*time.Second || life > time.Duration(ptr.Deref(r.Spec.MaxExpirationSeconds, defaultPodSeconds))*time.Second {
		errs = append(errs, field.Invalid(status.Child("certificateChain"), life.String(), "leaf certificate's lifetime must be at least 1 hour and at most spec.maxExpirationSeconds"))
	}
	// The node needs some minutes on both sides of the moment of renewal.
	const margin = 10 * time.Minute
	if at := r.Status.BeginRefreshAt.Time; at.Before(leaf.NotBefore.Add(margin)) || at.After(leaf.NotAfter.Add(-margin)) {
		errs = append(errs, field.Invalid(status.Child("beginRefreshAt"), at, "must be at least 10 minutes after notBefore and at least 10 minutes before notAfter"))
	}
	return errs
}

func sameKey(a, b any) bool {
	x, errX := x509.MarshalPKIXPublicKey(a)
	y, errY := x509.MarshalPKIXPublicKey(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
