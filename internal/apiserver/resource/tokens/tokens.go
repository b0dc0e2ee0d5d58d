// Package tokens makes and checks the tokens of service accounts: JSON Web Tokens, signed by the cluster, for certain audiences, for a time, and bound to an object (the
// pod that uses the token, mostly), with which they end.
//
//	serviceaccounts/token ─► Issue ─► token ─► AuthenticateToken: signature, time, audience, and: are account and bound object still the same?
package tokens

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/clock"
)

// Issuer is what the tokens of a cluster name as their issuer, and their audience when none was asked for.
const Issuer = "https://kubernetes.default.svc.cluster.local"

// Objects are read to see whether what a token speaks of is still there.
type Objects interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// Tokens issues and authenticates.
type Tokens struct {
	key       *ecdsa.PrivateKey
	keyID     string
	audiences authenticator.Audiences
	clock     clock.PassiveClock
	// objects is known when the storages are made, before anything is served.
	objects Objects
}

// New returns the tokens that key signs.
func New(key *ecdsa.PrivateKey, clock clock.PassiveClock) (*Tokens, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("the key that signs tokens of service accounts: %w", err)
	}
	digest := sha256.Sum256(der)
	return &Tokens{key: key, keyID: base64.RawURLEncoding.EncodeToString(digest[:]), audiences: authenticator.Audiences{Issuer}, clock: clock}, nil
}

// SetObjects says where accounts and bound objects are found. It is called once, before anything is served.
func (t *Tokens) SetObjects(o Objects) { t.objects = o }

// Audiences are those of the API server itself.
func (t *Tokens) Audiences() authenticator.Audiences { return t.audiences }

// Reference is an object by its name, as claims have it.
type Reference struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

func reference(o metav1.Object) *Reference { return &Reference{o.GetName(), string(o.GetUID())} }

// private are the claims that are Kubernetes' own.
type private struct {
	Namespace      string     `json:"namespace,omitempty"`
	Node           *Reference `json:"node,omitempty"`
	Pod            *Reference `json:"pod,omitempty"`
	Secret         *Reference `json:"secret,omitempty"`
	ServiceAccount Reference  `json:"serviceaccount"`
}

type claims struct {
	jwt.RegisteredClaims
	Kubernetes private `json:"kubernetes.io"`
}

// Binding is what a token is bound to; Node goes with the pod that runs there.
type Binding struct {
	Pod    *corev1.Pod
	Secret *corev1.Secret
	Node   *corev1.Node
}

// Issue signs a token of the account and says when it expires.
func (t *Tokens) Issue(account *corev1.ServiceAccount, bound Binding, audiences []string, life time.Duration) (string, time.Time, error) {
	now := t.clock.Now()
	expires := now.Add(life)
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: Issuer, Subject: serviceaccount.MakeUsername(account.Namespace, account.Name), Audience: audiences, ID: uuid.NewString(),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(expires),
		},
		Kubernetes: private{Namespace: account.Namespace, ServiceAccount: *reference(account)},
	}
	if bound.Pod != nil {
		c.Kubernetes.Pod = reference(bound.Pod)
	}
	if bound.Secret != nil {
		c.Kubernetes.Secret = reference(bound.Secret)
	}
	if bound.Node != nil {
		c.Kubernetes.Node = reference(bound.Node)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	token.Header["kid"] = t.keyID
	signed, err := token.SignedString(t.key)
	return signed, expires, err
}
