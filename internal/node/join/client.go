package join

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
)

// renewPeriod is how often it is looked whether connections have to be made anew because the certificate is another.
const renewPeriod = 5 * time.Second

// clientConfig is like the bootstrap configuration, but with the manager's certificate in place of the token. A connection is closed when it was made with
// a certificate that is not the current one any more.
func (c *Config) clientConfig(ctx context.Context, m certificate.Manager) (*rest.Config, error) {
	config := rest.AnonymousClientConfig(c.Bootstrap)
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("authority of the API server: %w", err)
	}
	if tlsConfig == nil {
		return nil, fmt.Errorf("API server %s: a node speaks to it by https only", config.Host)
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := m.Current(); current != nil {
			return current, nil
		}
		return &tls.Certificate{}, nil
	}
	dialer := connrotation.NewDialer(connrotation.DialFunc((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext))
	config.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25,
	}
	// What the transport does is not for client-go to do once more.
	config.TLSClientConfig, config.Dial, config.Proxy = rest.TLSClientConfig{}, nil, nil
	go c.closeOld(ctx, m, dialer.CloseAll)
	return config, nil
}

// closeOld closes all connections whenever the certificate has changed.
func (c *Config) closeOld(ctx context.Context, m certificate.Manager, closeAll func()) {
	ticker := c.Clock.NewTicker(renewPeriod)
	defer ticker.Stop()
	last := m.Current()
	for {
		select {
		case <-ctx.Done():
			closeAll()
			return
		case <-ticker.C():
		}
		current := m.Current()
		if last != nil && current != nil && current != last {
			closeAll()
		}
		if current != nil {
			last = current
		}
	}
}
