// Package bootstraptoken knows the tokens by which machines join a cluster: "ID.SECRET", six and sixteen small letters and digits, kept in a Secret of kube-system, for a
// time, and for one or both of two uses: to authenticate to the API, and to sign what the cluster says about itself (the ConfigMap cluster-info of kube-public), so that a
// machine that has only the token can trust it.
//
//	Secret ──Read──► Stored (what it may be used for, how long, groups)
//	"ID.SECRET" ──Parse──► Token ──Sign, Verify──► signature of a text
//
// See https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/.
package bootstraptoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
)

// Names of the objects, and of who shows a token.
const (
	SecretPrefix = "bootstrap-token-"
	UserPrefix   = "system:bootstrap:"
	Group        = "system:bootstrappers"
	// ClusterInfo is the ConfigMap of kube-public that tells where the cluster is and whom to trust: a kubeconfig under the key KubeconfigKey, and a signature by each token that signs.
	ClusterInfo     = "cluster-info"
	KubeconfigKey   = "kubeconfig"
	SignaturePrefix = "jws-kubeconfig-"
)

var form = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)

// Token is a bootstrap token. The ID is no secret.
type Token struct{ ID, Secret string }

// Parse reads a token; false when the text has not the form of one.
func Parse(text string) (Token, bool) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, false
	}
	return Token{parts[1], parts[2]}, true
}

// String is the token as it is shown to the API.
func (t Token) String() string { return t.ID + "." + t.Secret }

// SecretName is the name of the Secret that keeps the token.
func (t Token) SecretName() string { return SecretPrefix + t.ID }

// SignatureKey is the key of the ConfigMap cluster-info under which the token's signature stands.
func (t Token) SignatureKey() string { return SignaturePrefix + t.ID }

// Sign returns a JSON Web Signature of the content, made with the secret, that does not contain the content ("detached", RFC 7515 appendix F).
func (t Token) Sign(content string) string {
	header := struct {
		Algorithm string `json:"alg"`
		Key       string `json:"kid"`
	}{"HS256", t.ID}
	encoded, err := json.Marshal(header)
	if err != nil {
		panic(err) // Two strings can always be marshalled.
	}
	protected := base64.RawURLEncoding.EncodeToString(encoded)
	mac := hmac.New(sha256.New, []byte(t.Secret))
	mac.Write([]byte(protected + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	return protected + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Verify reports whether the signature of the content was made with the token.
func (t Token) Verify(content, signature string) bool {
	return hmac.Equal([]byte(t.Sign(content)), []byte(strings.TrimSpace(signature)))
}
