package tokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// deletionLeeway is how long a token lives on whose pod or account is being deleted: the pod's last requests are its own still.
const deletionLeeway = time.Minute

// AuthenticateToken implements authenticator.Token. A token of another issuer is another authenticator's business; one of ours that does not hold is an error.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if !t.isOurs(token) {
		return nil, false, nil
	}
	c := &claims{}
	_, err := jwt.ParseWithClaims(token, c, func(*jwt.Token) (any, error) { return t.key.Public(), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithIssuer(Issuer), jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(t.clock.Now))
	if err != nil {
		return nil, false, fmt.Errorf("service account token: %w", err)
	}
	wanted, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		wanted = t.audiences
	}
	audiences := authenticator.Audiences(c.Audience).Intersect(wanted)
	if len(audiences) == 0 {
		return nil, false, fmt.Errorf("token audiences %q is invalid for the target audiences %q", c.Audience, wanted)
	}
	if err := t.check(ctx, &c.Kubernetes); err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: info(c).UserInfo(), Audiences: audiences}, true, nil
}

// isOurs looks at the issuer before anything is trusted.
func (t *Tokens) isOurs(token string) bool {
	if strings.Count(token, ".") != 2 {
		return false
	}
	c := &claims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, c); err != nil {
		return false
	}
	return c.Issuer == Issuer
}

func info(c *claims) *serviceaccount.ServiceAccountInfo {
	k := &c.Kubernetes
	i := &serviceaccount.ServiceAccountInfo{Namespace: k.Namespace, Name: k.ServiceAccount.Name, UID: k.ServiceAccount.UID}
	if k.Pod != nil {
		i.PodName, i.PodUID = k.Pod.Name, k.Pod.UID
	}
	if k.Node != nil {
		i.NodeName, i.NodeUID = k.Node.Name, k.Node.UID
	}
	if c.ID != "" {
		i.CredentialID = "JTI=" + c.ID
	}
	return i
}

// check reads the account and what the token is bound to.
func (t *Tokens) check(ctx context.Context, c *private) error {
	account, err := t.objects.ServiceAccount(ctx, c.Namespace, c.ServiceAccount.Name)
	if err := t.same("service account", c.ServiceAccount, account, err); err != nil {
		return err
	}
	if c.Secret != nil {
		secret, err := t.objects.Secret(ctx, c.Namespace, c.Secret.Name)
		return t.same("secret", *c.Secret, secret, err)
	}
	if c.Pod != nil {
		pod, err := t.objects.Pod(ctx, c.Namespace, c.Pod.Name)
		// The node in the token of a pod tells where it was issued; the pod is what counts.
		return t.same("pod", *c.Pod, pod, err)
	}
	if c.Node != nil {
		node, err := t.objects.Node(ctx, c.Node.Name)
		return t.same("node", *c.Node, node, err)
	}
	return nil
}

func (t *Tokens) same(kind string, want Reference, have metav1.Object, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("service account token has been invalidated: %s %s: %w", kind, want.Name, err)
	case string(have.GetUID()) != want.UID:
		return fmt.Errorf("service account token has been invalidated: %s %s is another one now (UID %s)", kind, want.Name, have.GetUID())
	case have.GetDeletionTimestamp() != nil && have.GetDeletionTimestamp().Add(deletionLeeway).Before(t.clock.Now()):
		return errors.New("service account token has been invalidated: " + kind + " " + want.Name + " has been deleted")
	}
	return nil
}

var _ authenticator.Token = (*Tokens)(nil)
