package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/registries"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PullOptions are what a pull may be told beside the name.
type PullOptions struct {
	// Auth are the credentials for the registry; nil is anonymous.
	Auth authn.Authenticator
	// Insecure allows plain HTTP. Registries on loopback may always be spoken to in plain HTTP.
	Insecure bool
}

// platform is the platform whose images run here.
func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// Pull fetches an image from its registry and unpacks it. Layers that are there already are not fetched.
func (s *Store) Pull(ctx context.Context, ref string, options PullOptions) (Image, error) {
	full, err := normalize(ref)
	if err != nil {
		return Image{}, err
	}
	var nameOptions []name.Option
	if options.Insecure {
		nameOptions = append(nameOptions, name.Insecure)
	}
	parsed, err := name.ParseReference(full, nameOptions...)
	if err != nil {
		return Image{}, fmt.Errorf("image name %q: %w", ref, err)
	}
	source, err := s.fetch(ctx, parsed, options)
	if err != nil {
		return Image{}, fmt.Errorf("pull image %q: %w", full, err)
	}
	return s.addPulled(ctx, source, parsed, full)
}

// fetch finds the image at the first host that has it: the configured ones, then its registry. Credentials are for the registry alone. Layers are
// fetched from where the manifest was.
func (s *Store) fetch(ctx context.Context, parsed name.Reference, options PullOptions) (v1.Image, error) {
	registry := parsed.Context().RegistryStr()
	folder := registry
	if registry == name.DefaultRegistry {
		folder = "docker.io"
	}
	hosts, own, err := registries.Load(s.registries, folder)
	if err != nil {
		return nil, err
	}
	var failed error
	_, byDigest := parsed.(name.Digest)
	for i := range hosts {
		if !byDigest && !hosts[i].Resolve {
			continue
		}
		source, err := fetchFrom(ctx, parsed, &hosts[i], options)
		if err == nil {
			return source, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", hosts[i].URL.Host, err))
	}
	if !own {
		if failed == nil {
			failed = fmt.Errorf("no host that is configured for registry %s may resolve tags", folder)
		}
		return nil, failed
	}
	source, err := remote.Image(parsed, append(remoteOptions(ctx, options.Auth), remote.WithTransport(transport(nil)))...)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return source, nil
}

func fetchFrom(ctx context.Context, parsed name.Reference, host *registries.Host, options PullOptions) (v1.Image, error) {
	config, err := host.TLS()
	if err != nil {
		return nil, err
	}
	registry := parsed.Context().RegistryStr()
	var auth authn.Authenticator
	if host.URL.Host == registry {
		auth = options.Auth // the registry itself, only spoken to in another way
	}
	return remote.Image(parsed, append(remoteOptions(ctx, auth), remote.WithTransport(host.Transport(registry, transport(config))))...)
}

func remoteOptions(ctx context.Context, auth authn.Authenticator) []remote.Option {
	if auth == nil {
		auth = authn.Anonymous
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithAuth(auth), remote.WithPlatform(platform()), remote.WithUserAgent("bayplan")}
}

func (s *Store) addPulled(ctx context.Context, source v1.Image, parsed name.Reference, full string) (Image, error) {
	digest, err := source.Digest()
	if err != nil {
		return Image{}, fmt.Errorf("pull image %q: %w", full, err)
	}
	if wanted, ok := parsed.(name.Digest); ok {
		// The digest in the name may be that of an index; the name with it is how the image is asked for again.
		digest, err = v1.NewHash(wanted.DigestStr())
		if err != nil {
			return Image{}, fmt.Errorf("pull image %q: %w", full, err)
		}
	}
	var tags []string
	if _, tagged := parsed.(name.Tag); tagged {
		tags = []string{full}
	}
	image, err := s.add(ctx, source, tags, []string{repository(full) + "@" + digest.String()})
	if err != nil {
		return Image{}, fmt.Errorf("pull image %q: %w", full, err)
	}
	return image, nil
}

// transport is made for each pull and kept by none, so that no connection outlives its use.
func transport(config *tls.Config) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       config,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          8,
		IdleConnTimeout:       10 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
	}
}
