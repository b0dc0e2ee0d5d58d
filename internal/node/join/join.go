// Package join makes a machine known to a cluster: with a bootstrap token it asks for the node's own certificate, keeps it on disk, and asks for the next
// one before it ends. A second certificate is for the node API.
//
//	token ──CertificateSigningRequest──► client certificate (system:node:NAME) ──► ClientConfig
//	                                          └─CertificateSigningRequest──► serving certificate ──► GetCertificate
//
// Requests are for the signers kubernetes.io/kube-apiserver-client-kubelet and kubernetes.io/kubelet-serving. The first is approved by the cluster for
// holders of a token; the second may have to be approved by hand, as in Kubernetes, and until then the node API has no certificate.
package join

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Config is what a joining node has to know. Fields without a mark are required.
type Config struct {
	// Node is the name that the Node will have.
	Node string
	// Dir is where keys and certificates are kept.
	Dir string
	// Bootstrap leads to the API server with a bootstrap token. With a certificate on disk the token is not used any more and may be gone.
	Bootstrap *rest.Config
	// Names and Addresses are those of the node, for its serving certificate. Without any there is none.
	Names     []string
	Addresses []net.IP
	// NewClient makes clients. Optional.
	NewClient func(*rest.Config) (kubernetes.Interface, error)
	// Clock is optional: the real one otherwise.
	Clock clock.WithTicker
}

// The prefix and the group of nodes' users.
const (
	userPrefix = "system:node:"
	group      = "system:nodes"
)

// lookPeriod is how often it is looked whether a certificate has come.
const lookPeriod = 100 * time.Millisecond

// Identity is a node that has joined. Its certificates are renewed until the context of Join ends.
type Identity struct {
	client, serving certificate.Manager
	config          *rest.Config
}

// Join returns when the node has a certificate for its client: at once if it is on disk, and otherwise when it was issued.
func Join(ctx context.Context, cfg Config) (*Identity, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	i := &Identity{}
	var err error
	if i.client, err = cfg.clientManager(ctx, i); err != nil {
		return nil, err
	}
	if i.config, err = cfg.clientConfig(ctx, i.client); err != nil {
		return nil, err
	}
	i.client.Start()
	if err := await(ctx, cfg.Clock, i.client); err != nil {
		return nil, fmt.Errorf("node %s has no certificate yet: is its token valid, and are requests for signer %s approved? %w",
			cfg.Node, certificates.KubeAPIServerClientKubeletSignerName, err)
	}
	if len(cfg.Names)+len(cfg.Addresses) > 0 {
		if i.serving, err = cfg.servingManager(ctx, i); err != nil {
			return nil, err
		}
		i.serving.Start()
	}
	return i, nil
}

func (c *Config) complete() error {
	if c.Node == "" || c.Dir == "" || c.Bootstrap == nil {
		return errors.New("joining a cluster needs Config.Node, Dir and Bootstrap")
	}
	if c.NewClient == nil {
		c.NewClient = func(config *rest.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) }
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	return nil
}

// ClientConfig is how the node speaks to the API server: as itself, with the certificate that it has at the time.
func (i *Identity) ClientConfig() *rest.Config { return rest.CopyConfig(i.config) }

// GetCertificate is the serving certificate of the node API, for a tls.Config.
func (i *Identity) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if i.serving != nil {
		if current := i.serving.Current(); current != nil {
			return current, nil
		}
	}
	return nil, fmt.Errorf("the node has no serving certificate yet: look at `kubectl get csr`, requests for signer %s have to be approved", certificates.KubeletServingSignerName)
}

// subject is who the node is.
func (c *Config) subject() pkix.Name {
	return pkix.Name{CommonName: userPrefix + c.Node, Organization: []string{group}}
}

func (c *Config) clientManager(ctx context.Context, i *Identity) (certificate.Manager, error) {
	return c.manager(ctx, "client", certificates.KubeAPIServerClientKubeletSignerName, &x509.CertificateRequest{Subject: c.subject()},
		certificate.DefaultKubeletClientGetUsages, func(current *tls.Certificate) (kubernetes.Interface, error) {
			if current == nil {
				return c.NewClient(c.Bootstrap)
			}
			return c.NewClient(i.ClientConfig())
		})
}

func (c *Config) servingManager(ctx context.Context, i *Identity) (certificate.Manager, error) {
	template := &x509.CertificateRequest{Subject: c.subject(), DNSNames: c.Names, IPAddresses: c.Addresses}
	return c.manager(ctx, "serving", certificates.KubeletServingSignerName, template, certificate.DefaultKubeletServingGetUsages,
		func(*tls.Certificate) (kubernetes.Interface, error) { return c.NewClient(i.ClientConfig()) })
}

func (c *Config) manager(ctx context.Context, use, signer string, template *x509.CertificateRequest, usages func(any) []certificates.KeyUsage,
	client certificate.ClientsetFunc) (certificate.Manager, error) {
	dir := filepath.Join(c.Dir, "pki")
	store, err := certificate.NewFileStoreWithLogger(klog.FromContext(ctx), "node-"+use, dir, dir, "", "")
	if err != nil {
		return nil, fmt.Errorf("%s certificate of node %s: %w", use, c.Node, err)
	}
	m, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: client, Template: template, SignerName: signer, GetUsages: usages, CertificateStore: store, Name: "node-" + use, Ctx: &ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("%s certificate of node %s: %w", use, c.Node, err)
	}
	return m, nil
}

// await returns when there is a certificate.
func await(ctx context.Context, c clock.WithTicker, m certificate.Manager) error {
	ticker := c.NewTicker(lookPeriod)
	defer ticker.Stop()
	for m.Current() == nil {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C():
		}
	}
	return nil
}
