package volume

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Certificates of pods (KEP-4317): the node makes a key, asks the signer for a certificate by a PodCertificateRequest, and projects both once it is
// issued. When it is time to refresh, another key is made and the old pair stays in place until the new one is issued.

// certificateKey names one projection of a certificate.
type certificateKey struct {
	uid                                             types.UID
	signer, keyType, bundlePath, keyPath, chainPath string
}

func certificateKeyOf(pod *v1.Pod, p *v1.PodCertificateProjection) certificateKey {
	return certificateKey{pod.UID, p.SignerName, p.KeyType, p.CredentialBundlePath, p.KeyPath, p.CertificateChainPath}
}

// podCertificate is what was issued for a projection and what has been asked for.
type podCertificate struct {
	issued  *credential
	asked   *credential
	request string // name of the request for asked
}

// credential is a key and, once it is issued, its certificate with those above it, all in PEM.
type credential struct {
	key, chain []byte
	refreshAt  time.Time
}

// podCertificate adds the files of a certificate. As long as none was issued, that is an error, and the next call looks again.
func (m *Manager) podCertificate(ctx context.Context, out files, pod *v1.Pod, p *v1.PodCertificateProjection, mode int32) error {
	key := certificateKeyOf(pod, p)
	m.mu.Lock()
	c := m.certificates[key]
	if c == nil {
		c = &podCertificate{}
		m.certificates[key] = c
	}
	m.mu.Unlock()
	err := m.renew(ctx, pod, p, c)
	if c.issued == nil {
		return err
	}
	for path, data := range map[string][]byte{
		p.CredentialBundlePath: append(append([]byte(nil), c.issued.key...), c.issued.chain...),
		p.KeyPath:              c.issued.key, p.CertificateChainPath: c.issued.chain,
	} {
		if path != "" {
			out[path] = file{data, mode}
		}
	}
	return nil
}

// renew does what is next for a certificate: asks for it, or looks whether it was issued. Volumes of one pod are set up one call at a time.
func (m *Manager) renew(ctx context.Context, pod *v1.Pod, p *v1.PodCertificateProjection, c *podCertificate) error {
	if c.asked == nil && c.issued != nil && m.clock.Now().Before(c.issued.refreshAt) {
		return nil
	}
	if c.asked == nil {
		if err := m.askCertificate(ctx, pod, p, c); err != nil {
			return err
		}
	}
	request, err := m.client.CertificatesV1().PodCertificateRequests(pod.Namespace).Get(ctx, c.request, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.asked = nil // it was deleted: ask anew the next time
	}
	if err != nil {
		return fmt.Errorf("podcertificaterequest %s: %w", c.request, err)
	}
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case certificates.PodCertificateRequestConditionTypeDenied, certificates.PodCertificateRequestConditionTypeFailed:
			return fmt.Errorf("podcertificaterequest %s of signer %s: %s: %s: %s", c.request, p.SignerName, condition.Type, condition.Reason, condition.Message)
		case certificates.PodCertificateRequestConditionTypeIssued:
			return c.take(request)
		}
	}
	return fmt.Errorf("podcertificaterequest %s has not been answered by signer %s yet", c.request, p.SignerName)
}

// take makes the certificate that was asked for the one that is used.
func (c *podCertificate) take(request *certificates.PodCertificateRequest) error {
	rest := []byte(request.Status.CertificateChain)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c.asked.chain = append(c.asked.chain, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if len(c.asked.chain) == 0 || request.Status.BeginRefreshAt == nil {
		return fmt.Errorf("podcertificaterequest %s is issued without a certificate or a time to refresh it", request.Name)
	}
	c.asked.refreshAt = request.Status.BeginRefreshAt.Time
	c.issued, c.asked, c.request = c.asked, nil, ""
	return nil
}

// askCertificate makes a key and a request for its certificate.
func (m *Manager) askCertificate(ctx context.Context, pod *v1.Pod, p *v1.PodCertificateProjection, c *podCertificate) error {
	account, err := m.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("service account of the pod: %w", err)
	}
	node, err := m.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("node of the pod: %w", err)
	}
	key, csr, err := keyAndRequest(p.KeyType)
	if err != nil {
		return err
	}
	made, err := m.client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, &certificates.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "req-" + pod.Name + "-", Namespace: pod.Namespace},
		Spec: certificates.PodCertificateRequestSpec{
			SignerName: p.SignerName, PodName: pod.Name, PodUID: pod.UID, ServiceAccountName: account.Name, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID, MaxExpirationSeconds: p.MaxExpirationSeconds, StubPKCS10Request: csr,
			UnverifiedUserAnnotations: p.UserAnnotations,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("podcertificaterequest: %w", err)
	}
	c.asked, c.request = &credential{key: key}, made.Name
	return nil
}

// keyAndRequest makes a key of the type and an empty request that proves who has it.
func keyAndRequest(keyType string) (key, csr []byte, err error) {
	signer, err := newKey(keyType)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, err
	}
	csr, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, signer)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), csr, err
}

func newKey(keyType string) (crypto.Signer, error) {
	switch keyType {
	case "RSA3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, errors.New("podCertificate: keyType must be RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519, not " + keyType)
}
