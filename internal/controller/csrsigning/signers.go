package csrsigning

import (
	"crypto/x509"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bayplan/bayplan/internal/controller/csr"
)

// legacyUnknown is the signer of requests from before signers had names. The API takes no new ones, but may have old ones.
const legacyUnknown = "kubernetes.io/legacy-unknown"

// signers tell of each signer why it does not sign a request; nil when it does.
var signers = map[string]func(asked *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error{
	certificatesv1.KubeAPIServerClientSignerName:        func(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error { return clientUsages(usages) },
	certificatesv1.KubeAPIServerClientKubeletSignerName: csr.NodeClient,
	certificatesv1.KubeletServingSignerName:             csr.NodeServing,
	legacyUnknown:                                       func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil },
}

// clientUsages are those of a certificate that is for clients and for nothing else.
func clientUsages(usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth:
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}
