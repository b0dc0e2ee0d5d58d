// Package authentication tells who makes a request: by a client certificate of the cluster's authority, or by a bearer token. Parts of the cluster that
// run in the API server's own process have tokens that exist in memory only. Who shows nothing is system:anonymous, and only where health is asked for.
package authentication

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"sync"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
)

// HealthPaths are the paths that need no identity.
var HealthPaths = []string{"/livez", "/readyz", "/healthz"}

// New puts the ways of authentication together; tokens are asked in order.
func New(clients *x509.CertPool, tokens ...authenticator.Token) authenticator.Request {
	certificates := requestx509.NewDynamic(func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}, requestx509.CommonNameUserConversion)
	known := union.New(certificates, bearertoken.New(tokenunion.New(tokens...)))
	var conditions []apiserver.AnonymousAuthCondition
	for _, path := range HealthPaths {
		conditions = append(conditions, apiserver.AnonymousAuthCondition{Path: path})
	}
	return union.NewFailOnError(group.NewAuthenticatedGroupAdder(known), anonymous.NewAuthenticator(conditions))
}

// ProcessTokens are the tokens of parts that run in this process. They are looked up by their digest, so that the time of a look-up says nothing about
// how much of a guess was right.
type ProcessTokens struct {
	mu    sync.RWMutex
	users map[[sha256.Size]byte]user.Info
}

// Issue makes a token for the user, which is valid as long as the process lives.
func (p *ProcessTokens) Issue(u user.Info) string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == nil {
		p.users = map[[sha256.Size]byte]user.Info{}
	}
	p.users[sha256.Sum256([]byte(token))] = u
	return token
}

// AuthenticateToken implements authenticator.Token.
func (p *ProcessTokens) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u, ok := p.users[sha256.Sum256([]byte(token))]
	if !ok {
		return nil, false, nil
	}
	return &authenticator.Response{User: u}, true, nil
}
