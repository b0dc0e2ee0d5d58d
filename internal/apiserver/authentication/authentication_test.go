package authentication

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/pki"
)

func certificate(t *testing.T, a *pki.Authority, u string, groups ...string) *x509.Certificate {
	t.Helper()
	identity, err := a.Identity(u, pki.Request{User: u, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := identity.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.Open(t.TempDir(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWho(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	tokens := &ProcessTokens{}
	token := tokens.Issue(&user.DefaultInfo{Name: "part", Groups: []string{"parts"}})
	request := New(ours.Pool(), tokens)
	for _, test := range []struct {
		name  string
		cert  *x509.Certificate
		token string
		path  string
		want  string
		fails bool
	}{
		{name: "certificate", cert: certificate(t, ours, "u", "g"), path: "/api", want: "u"},
		{name: "certificate of a stranger", cert: certificate(t, theirs, "u", "system:masters"), path: "/api", fails: true},
		{name: "token", token: token, path: "/api", want: "part"},
		{name: "wrong token", token: token + "x", path: "/api", fails: true},
		{name: "wrong token for health", token: "guess", path: "/livez", fails: true},
		{name: "nobody", path: "/api"},
		{name: "nobody asks for health", path: "/readyz", want: user.Anonymous},
		{name: "nobody below a health path", path: "/readyz/etcd"},
	} {
		r := httptest.NewRequest("GET", test.path, nil)
		r = r.WithContext(genericapirequest.WithRequestInfo(r.Context(), &genericapirequest.RequestInfo{Path: test.path}))
		r.TLS = &tls.ConnectionState{}
		if test.cert != nil {
			r.TLS.PeerCertificates = []*x509.Certificate{test.cert}
		}
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		response, ok, err := request.AuthenticateRequest(r)
		switch {
		case test.fails != (err != nil):
			t.Errorf("%s: error %v, want one: %v", test.name, err, test.fails)
		case ok != (test.want != ""):
			t.Errorf("%s: known %v, want %q", test.name, ok, test.want)
		case ok && response.User.GetName() != test.want:
			t.Errorf("%s: %s, want %s", test.name, response.User.GetName(), test.want)
		}
	}
}

func TestTokensAreNotGuessable(t *testing.T) {
	tokens := &ProcessTokens{}
	a, b := tokens.Issue(&user.DefaultInfo{Name: "a"}), tokens.Issue(&user.DefaultInfo{Name: "a"})
	if a == b || len(a) < 43 {
		t.Errorf("tokens %q and %q: want 256 random bits each", a, b)
	}
}
