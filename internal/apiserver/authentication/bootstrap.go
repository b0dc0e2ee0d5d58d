package authentication

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
)

// BootstrapTokens authenticates machines that join the cluster.
type BootstrapTokens struct {
	// Secret reads a Secret of kube-system. It is asked only for what has the form of such a token.
	Secret func(ctx context.Context, name string) (*corev1.Secret, error)
	Clock  clock.PassiveClock
}

// AuthenticateToken implements authenticator.Token. That a token is not known, is over or may not be used for this is told in the log alone: a stranger learns nothing from it.
func (b *BootstrapTokens) AuthenticateToken(ctx context.Context, text string) (*authenticator.Response, bool, error) {
	token, ok := bootstraptoken.Parse(text)
	if !ok {
		return nil, false, nil
	}
	secret, err := b.Secret(ctx, token.SecretName())
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	stored, err := b.check(secret, token)
	if err != nil {
		klog.FromContext(ctx).V(3).Info("A bootstrap token was refused", "secret", klog.KObj(secret), "reason", err.Error())
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: bootstraptoken.UserPrefix + token.ID, Groups: stored.Groups}}, true, nil
}

func (b *BootstrapTokens) check(secret *corev1.Secret, token bootstraptoken.Token) (bootstraptoken.Stored, error) {
	stored, err := bootstraptoken.Read(secret)
	switch {
	case err != nil:
		return stored, err
	case secret.DeletionTimestamp != nil:
		return stored, errors.New("it is being deleted")
	case subtle.ConstantTimeCompare([]byte(stored.Secret), []byte(token.Secret)) != 1:
		return stored, errors.New("the secret part is another")
	case stored.Expired(b.Clock.Now()):
		return stored, errors.New("it has expired")
	case !stored.Authenticates:
		return stored, fmt.Errorf("%s is not true", bootstraptoken.AuthenticationKey)
	}
	return stored, nil
}
