package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A server that went away is noticed soon, at little cost.
const (
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// External is an etcd cluster that others run.
type External struct {
	// Endpoints are URLs.
	Endpoints []string
	// CAFile verifies the etcd servers; CertFile and KeyFile say who this client is.
	CAFile, CertFile, KeyFile string
}

// Validate refuses what cannot work. Its errors name the command line's flags.
func (e External) Validate() error {
	secure := 0
	for _, endpoint := range e.Endpoints {
		switch {
		case strings.HasPrefix(endpoint, "https://"):
			secure++
		case !strings.HasPrefix(endpoint, "http://"):
			return fmt.Errorf("--etcd-endpoints %q: must be a URL, for example https://10.0.0.1:2379", endpoint)
		}
	}
	files := e.CAFile + e.CertFile + e.KeyFile
	switch {
	case len(e.Endpoints) == 0 && files != "":
		return errors.New("--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-endpoints")
	case (e.CertFile == "") != (e.KeyFile == ""):
		return errors.New("--etcd-certfile and --etcd-keyfile belong together: give both, or neither")
	case secure > 0 && secure < len(e.Endpoints):
		return errors.New("--etcd-endpoints: either all are https:// or none is")
	case secure == 0 && files != "":
		return errors.New("--etcd-cafile, --etcd-certfile and --etcd-keyfile need endpoints that begin with https://")
	}
	return nil
}

func (e External) config() (clientv3.Config, error) {
	config := clientv3.Config{
		Endpoints: e.Endpoints, DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout, Logger: newLogger(strings.Join(e.Endpoints, ",")),
		MaxCallSendMsgSize: maxRequestBytes,
	}
	if !strings.HasPrefix(e.Endpoints[0], "https://") {
		return config, nil
	}
	var err error
	config.TLS, err = transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}.ClientConfig()
	if err != nil {
		err = fmt.Errorf("reading the certificates for etcd (--etcd-cafile, --etcd-certfile, --etcd-keyfile): %w", err)
	}
	return config, err
}

func openExternal(ctx context.Context, options Options) (*Store, error) {
	config, err := options.External.config()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", strings.Join(config.Endpoints, ", "), err)
	}
	s := newStore(client, options, func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(ctx, options.ReadyTimeout)
	defer cancel()
	if err := s.Healthy(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("etcd at %s does not answer: %w; see --etcd-endpoints and --etcd-cafile, --etcd-certfile, --etcd-keyfile",
			strings.Join(config.Endpoints, ", "), err)
	}
	return s, nil
}
