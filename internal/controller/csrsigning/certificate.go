package csrsigning

import (
	"crypto/x509"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// How long certificates are good for, as kube-controller-manager has it by default.
const (
	longest  = 365 * 24 * time.Hour
	shortest = 10 * time.Minute
	// backdate lets a peer whose clock is a little behind accept a new certificate.
	backdate = 5 * time.Minute
	// short certificates last as long as was asked for from now on; the others count from the backdated start.
	short = 8 * time.Hour
)

// certificate is what the request asks for, signed, in PEM.
func (c *Controller) certificate(r *certificatesv1.CertificateSigningRequest, asked *x509.CertificateRequest) ([]byte, error) {
	now, life := c.clock.Now(), lifetime(r.Spec.ExpirationSeconds)
	template := &x509.Certificate{
		Subject: asked.Subject, DNSNames: asked.DNSNames, IPAddresses: asked.IPAddresses, EmailAddresses: asked.EmailAddresses, URIs: asked.URIs,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life), BasicConstraintsValid: true,
	}
	if life >= short {
		template.NotAfter = template.NotBefore.Add(life)
	}
	if err := setUsages(template, r.Spec.Usages); err != nil {
		return nil, err
	}
	return c.authority.Sign(template, asked.PublicKey)
}

func lifetime(seconds *int32) time.Duration {
	if seconds == nil {
		return longest
	}
	return min(max(time.Duration(*seconds)*time.Second, shortest), longest)
}

var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
	certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
	certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
	certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
	certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
	certificatesv1.UsageCertSign:          x509.KeyUsageCertSign,
	certificatesv1.UsageCRLSign:           x509.KeyUsageCRLSign,
	certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
	certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
}

var extendedUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
	certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
	certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
	certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
	certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
	certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}

func setUsages(template *x509.Certificate, usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		if bit, found := keyUsages[u]; found {
			template.KeyUsage |= bit
		} else if extended, found := extendedUsages[u]; found {
			template.ExtKeyUsage = append(template.ExtKeyUsage, extended)
		} else {
			return fmt.Errorf("unrecognized usage values: %q", u)
		}
	}
	return nil
}
