package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of how long a pod's certificate may be valid, in seconds. Kubernetes' own signers sign for a day at most, others for 91 days.
const (
	minCertificate    = 60 * 60
	maxCertificate    = 91 * 24 * 60 * 60
	maxOwnCertificate = 24 * 60 * 60
)

var certificateKeys = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

// validatePodCertificates checks what projected volumes ask of signers.
func validatePodCertificates(volumes []corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range volumes {
		if v.Projected == nil {
			continue
		}
		for k, source := range v.Projected.Sources {
			if source.PodCertificate != nil {
				errs = append(errs, validatePodCertificate(source.PodCertificate, path.Index(i).Child("projected", "sources").Index(k).Child("podCertificate"))...)
			}
		}
	}
	return errs
}

func validatePodCertificate(c *corev1.PodCertificateProjection, path *field.Path) field.ErrorList {
	errs := oneOf(c.KeyType, path.Child("keyType"), certificateKeys...)
	if c.MaxExpirationSeconds == nil {
		return errs
	}
	seconds, most, p := *c.MaxExpirationSeconds, int32(maxCertificate), path.Child("maxExpirationSeconds")
	if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		most = maxOwnCertificate
	}
	switch {
	case seconds < minCertificate:
		errs = append(errs, field.Invalid(p, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", minCertificate)))
	case seconds > most:
		errs = append(errs, field.Invalid(p, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
	}
	return errs
}
