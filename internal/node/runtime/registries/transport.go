package registries

import (
	"net/http"
	"strings"
)

// Transport takes the requests for a registry to one of its hosts. Requests to others, such as servers of tokens and of layers, go where they are addressed.
func (h *Host) Transport(registry string, base http.RoundTripper) http.RoundTripper {
	return &transport{h, registry, base}
}

type transport struct {
	host     *Host
	registry string
	base     http.RoundTripper
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != t.registry {
		return t.base.RoundTrip(request)
	}
	r := request.Clone(request.Context())
	u := t.host.URL
	r.URL.Scheme, r.URL.Host, r.Host = u.Scheme, u.Host, u.Host
	path := r.URL.Path
	if t.host.OverridePath {
		path = strings.TrimPrefix(path, "/v2")
	}
	r.URL.Path = strings.TrimSuffix(u.Path, "/") + path
	r.URL.RawPath = ""
	for name, values := range t.host.Header {
		r.Header[name] = values
	}
	return t.base.RoundTrip(r)
}
