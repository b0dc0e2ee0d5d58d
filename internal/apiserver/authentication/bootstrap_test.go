package authentication

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
)

func TestBootstrapTokens(t *testing.T) {
	const good = "abcdef.0123456789abcdef"
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		token  string
		change func(*corev1.Secret)
		want   bool
	}{
		"good":               {good, nil, true},
		"another secret":     {"abcdef.fedcba9876543210", nil, false},
		"another token":      {"zzzzzz.0123456789abcdef", nil, false},
		"no token":           {"abcdef", nil, false},
		"expires later":      {good, func(s *corev1.Secret) { s.Data["expiration"] = []byte("2026-01-01T00:00:01Z") }, true},
		"expired":            {good, func(s *corev1.Secret) { s.Data["expiration"] = []byte("2026-01-01T00:00:00Z") }, false},
		"for signing":        {good, func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }, false},
		"going":              {good, func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }, false},
		"of another type":    {good, func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, false},
		"of a strange group": {good, func(s *corev1.Secret) { s.Data["auth-extra-groups"] = []byte("system:masters") }, false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: bootstraptoken.SecretType, Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
		}}
		if c.change != nil {
			c.change(secret)
		}
		tokens := &BootstrapTokens{Clock: clocktesting.NewFakePassiveClock(now), Secret: func(_ context.Context, name string) (*corev1.Secret, error) {
			if name != secret.Name {
				return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
			}
			return secret, nil
		}}
		response, ok, err := tokens.AuthenticateToken(t.Context(), c.token)
		if ok != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if ok && (response.User.GetName() != "system:bootstrap:abcdef" || response.User.GetGroups()[0] != "system:bootstrappers") {
			t.Errorf("%s: %+v", name, response.User)
		}
	}
}

// TestBootstrapTokenStore: a store that does not answer is an error; what has not the form of a token is not even looked up.
func TestBootstrapTokenStore(t *testing.T) {
	asked := 0
	tokens := &BootstrapTokens{Clock: clocktesting.NewFakePassiveClock(time.Time{}), Secret: func(context.Context, string) (*corev1.Secret, error) {
		asked++
		return nil, errors.New("no answer")
	}}
	if _, _, err := tokens.AuthenticateToken(t.Context(), "abcdef.0123456789abcdef"); err == nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, ok, err := tokens.AuthenticateToken(t.Context(), "eyJhbGciOi.eyJpc3Mi.c2ln"); ok || err != nil || asked != 1 {
		t.Errorf("%v, %v, asked %d times", ok, err, asked)
	}
}
