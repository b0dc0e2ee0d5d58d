package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// shortestSeconds is the shortest life that can be asked for.
const shortestSeconds = 600

var usages = sets.New(
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
	certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME,
	certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping,
	certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC)

func validateRequest(r *csr) field.ErrorList {
	errs := validateSigner(r.Spec.SignerName, spec.Child("signerName"))
	if err := parseRequest(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(spec.Child("request"), r.Spec.Request, err.Error()))
	}
	path := spec.Child("usages")
	if len(r.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	for i, usage := range r.Spec.Usages {
		switch {
		case !usages.Has(usage):
			errs = append(errs, field.NotSupported(path.Index(i), usage, sets.List(usages)))
		case slices.Index(r.Spec.Usages, usage) < i:
			errs = append(errs, field.Duplicate(path.Index(i), usage))
		}
	}
	if s := r.Spec.ExpirationSeconds; s != nil && *s < shortestSeconds {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

func parseRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return fmt.Errorf("PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return parsed.CheckSignature()
}

// validateRequestStatus: what was decided stays decided, and a certificate that was issued stays the one.
func validateRequestStatus(r, old *csr) field.ErrorList {
	path := field.NewPath("status", "conditions")
	var errs field.ErrorList
	seen := sets.New[certificatesv1.RequestConditionType]()
	for i, c := range r.Status.Conditions {
		p := path.Index(i)
		errs = append(errs, rules.Required(c.Type, p.Child("type"))...)
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(p.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
		allowed := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		if decides(c) || c.Type == certificatesv1.CertificateFailed {
			allowed = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		errs = append(errs, rules.OneOf(c.Status, p.Child("status"), allowed...)...)
	}
	if seen.HasAll(certificatesv1.CertificateApproved, certificatesv1.CertificateDenied) {
		errs = append(errs, field.Invalid(path, certificatesv1.CertificateDenied, "Approved and Denied conditions are mutually exclusive"))
	}
	for _, c := range old.Status.Conditions {
		if !seen.Has(c.Type) && (decides(c) || c.Type == certificatesv1.CertificateFailed) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", c.Type)))
		}
	}
	certificate := field.NewPath("status", "certificate")
	switch {
	case len(old.Status.Certificate) > 0 && string(old.Status.Certificate) != string(r.Status.Certificate):
		errs = append(errs, field.Forbidden(certificate, "updates may not change certificate content"))
	case len(r.Status.Certificate) > 0:
		errs = append(errs, validateChain(r.Status.Certificate, certificate)...)
	}
	return errs
}

func validateChain(data []byte, path *field.Path) field.ErrorList {
	n := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		n++
		if block.Type != "CERTIFICATE" {
			return field.ErrorList{field.Invalid(path, "<certificate data>", fmt.Sprintf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type))}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{field.Invalid(path, "<certificate data>", err.Error())}
		}
	}
	if n == 0 {
		return field.ErrorList{field.Invalid(path, "<certificate data>", "must contain at least one CERTIFICATE PEM block")}
	}
	return nil
}

func clusterTrustBundle() *resource.Kind[*certificatesv1.ClusterTrustBundle] {
	validate := func(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
		errs := validateChain([]byte(b.Spec.TrustBundle), spec.Child("trustBundle"))
		if b.Spec.SignerName != "" {
			errs = append(errs, validateSigner(b.Spec.SignerName, spec.Child("signerName"))...)
		}
		return errs
	}
	return &resource.Kind[*certificatesv1.ClusterTrustBundle]{
		Resource:    "clustertrustbundles",
		ClusterWide: true,
		New:         func() *certificatesv1.ClusterTrustBundle { return &certificatesv1.ClusterTrustBundle{} },
		NewList:     func() runtime.Object { return &certificatesv1.ClusterTrustBundleList{} },
		// Names of bundles with a signer have its name, and colons, in them.
		ValidateName: validateBundleName,
		Validate:     validate,
		ValidateUpdate: func(b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
			return append(validate(b), rules.Unchanged(b.Spec.SignerName, old.Spec.SignerName, spec.Child("signerName"))...)
		},
		Fields: map[string]func(*certificatesv1.ClusterTrustBundle) string{
			"spec.signerName": func(b *certificatesv1.ClusterTrustBundle) string { return b.Spec.SignerName },
		},
		Columns: []resource.Column[*certificatesv1.ClusterTrustBundle]{
			{Name: "SignerName", Description: "Whose trust it is.", Value: func(b *certificatesv1.ClusterTrustBundle) any { return resource.OrNone(b.Spec.SignerName) }},
			resource.Age[*certificatesv1.ClusterTrustBundle](),
		},
	}
}
