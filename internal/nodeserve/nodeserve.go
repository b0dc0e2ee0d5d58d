// Package nodeserve serves the node API over TLS to those who may use it. What is served differs between real and simulated nodes; who gets in does not.
package nodeserve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// headerTimeout bounds how long a client may take to say what it wants.
const headerTimeout = 10 * time.Second

// Access says with which certificate the server shows itself, and who may use it: holders of a certificate by one of the authorities with one of the common names.
type Access struct {
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs   *x509.CertPool
	ClientNames []string
}

// Serve serves until ctx ends, and closes the listener. The server has its handler, and what else is not said here.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, access Access) error {
	server.ReadHeaderTimeout = headerTimeout
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	server.ErrorLog = slog.NewLogLogger(logr.ToSlogHandler(klog.FromContext(ctx).V(4)), slog.LevelInfo)
	server.TLSConfig = &tls.Config{
		// Streams are upgrades, which HTTP/2 doesn't have.
		MinVersion: tls.VersionTLS12, GetCertificate: access.Certificate, NextProtos: []string{"http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: access.ClientCAs, VerifyConnection: access.verify,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err := server.ServeTLS(listener, "", "")
	if ctx.Err() != nil && (errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	return err
}

// verify lets only the named clients in, among all to whom the authority gave certificates.
func (a Access) verify(state tls.ConnectionState) error {
	if name := state.PeerCertificates[0].Subject.CommonName; !slices.Contains(a.ClientNames, name) {
		return fmt.Errorf("%q may not use the node API", name)
	}
	return nil
}
