// Package csr is what the controllers of CertificateSigningRequests share: how far a request has come, and which requests are those of a node.
//
//	requester ──creates──► request ──csrapproving──► approved ──csrsigning──► certificate ──csrcleaner──► gone
//	                                 (or somebody with `kubectl certificate`)
package csr

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// What is in the name of every node's certificates.
const (
	nodesGroup     = "system:nodes"
	nodeNamePrefix = "system:node:"
)

// Condition finds a condition that holds; nil when it does not.
func Condition(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == kind && c.Status != corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

// Approved tells whether the request may be signed. A denial outweighs an approval.
func Approved(r *certificatesv1.CertificateSigningRequest) bool {
	return Condition(r, certificatesv1.CertificateApproved) != nil && Condition(r, certificatesv1.CertificateDenied) == nil
}

// Decided tells whether somebody has approved or denied the request.
func Decided(r *certificatesv1.CertificateSigningRequest) bool {
	return Condition(r, certificatesv1.CertificateApproved) != nil || Condition(r, certificatesv1.CertificateDenied) != nil
}

// Parse reads what is asked for from spec.request and checks that the requester has the key.
func Parse(r *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("CertificateSigningRequest %s: spec.request is no PEM block of type CERTIFICATE REQUEST", r.Name)
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = asked.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("CertificateSigningRequest %s: spec.request: %w", r.Name, err)
	}
	return asked, nil
}

//lint:ignore ST1005 the message is in conditions that people and tools know from Kubernetes
var errEmail = errors.New("Email subjectAltNames are not allowed")

//lint:ignore ST1005 likewise
var errName = errors.New("subject common name does not begin with system:node:")

// NodeClient tells why a request is not one for the certificate with which a node speaks to the API server; nil when it is.
func NodeClient(asked *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(asked.Subject.Organization, []string{nodesGroup}):
		return errors.New("subject organization is not system:nodes")
	case len(asked.DNSNames) > 0:
		return errors.New("DNS subjectAltNames are not allowed")
	case len(asked.EmailAddresses) > 0:
		return errEmail
	case len(asked.IPAddresses) > 0:
		return errors.New("IP subjectAltNames are not allowed")
	case len(asked.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	case !strings.HasPrefix(asked.Subject.CommonName, nodeNamePrefix):
		return errName
	}
	return checkUsages(usages, certificatesv1.UsageClientAuth)
}

// NodeServing tells why a request is not one for the certificate with which a node serves; nil when it is.
func NodeServing(asked *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(asked.Subject.Organization, []string{nodesGroup}):
		return errors.New("subject organization is not system:nodes")
	case len(asked.DNSNames)+len(asked.IPAddresses) == 0:
		return errors.New("DNS or IP subjectAltName is required")
	case len(asked.EmailAddresses) > 0:
		return errEmail
	case len(asked.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	case !strings.HasPrefix(asked.Subject.CommonName, nodeNamePrefix):
		return errName
	}
	return checkUsages(usages, certificatesv1.UsageServerAuth)
}

// checkUsages wants digital signature and the given use. Key encipherment is left to the requester: only RSA keys need it.
func checkUsages(usages []certificatesv1.KeyUsage, use certificatesv1.KeyUsage) error {
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, use}
	has := func(u certificatesv1.KeyUsage) bool { return slices.Contains(usages, u) }
	other := slices.ContainsFunc(usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(allowed, u) })
	if other || !has(certificatesv1.UsageDigitalSignature) || !has(use) {
		return fmt.Errorf("usages did not match %v", allowed)
	}
	return nil
}
