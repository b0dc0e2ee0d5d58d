// Package serviceaccounttoken fills in the Secrets of type kubernetes.io/service-account-token, by which programs outside of the cluster are given a token that does
// not end, and deletes them with their ServiceAccount.
//
// Secret events lead to a sync of the Secret, and the end of a ServiceAccount to one of its Secrets. A sync asks for a token by a TokenRequest that is bound to the
// Secret: it holds for as long as both, Secret and ServiceAccount, are there.
package serviceaccounttoken

import (
	"bytes"
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "serviceaccount-token-controller"

// life is the longest that a token may be asked for: 136 years.
const life int64 = 1 << 32

// Controller fills in Secrets.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	rootCA   []byte
	own      informers.SharedInformerFactory
	secrets  corelisters.SecretLister
	accounts corelisters.ServiceAccountLister
}

// New makes the controller. Secrets are many and large, so that it has an informer of its own for those of this type.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	own := informers.NewSharedInformerFactoryWithOptions(deps.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()
	}))
	secrets, accounts := own.Core().V1().Secrets(), deps.Informers.Core().V1().ServiceAccounts()
	c := &Controller{client: deps.Client, rootCA: deps.RootCA, own: own, secrets: secrets.Lister(), accounts: accounts.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(secrets.Informer(), controller.Handlers[*corev1.Secret]{
		Add: func(s *corev1.Secret) { c.AddObject(s) }, Update: func(_, s *corev1.Secret) { c.AddObject(s) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(accounts.Informer(), controller.Handlers[*corev1.ServiceAccount]{Delete: c.accountGone})
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.own.StartWithContext(ctx)
	c.Loop.Run(ctx)
	c.own.Shutdown()
}

func (c *Controller) accountGone(account *corev1.ServiceAccount) {
	secrets, err := c.secrets.Secrets(account.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, s := range secrets {
		if s.Annotations[corev1.ServiceAccountNameKey] == account.Name {
			c.AddObject(s)
		}
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	secret, err := c.secrets.Secrets(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp != nil || secret.Annotations[corev1.ServiceAccountNameKey] == "" {
		return nil
	}
	account, err := c.accountOf(ctx, secret)
	switch {
	case err != nil:
		return err
	case account == nil:
		return c.remove(ctx, secret)
	}
	return c.fill(ctx, secret, account)
}

// accountOf finds the ServiceAccount of a Secret; nil when it is gone. A Secret may be deleted for it, so that a cache that is behind is no proof.
func (c *Controller) accountOf(ctx context.Context, secret *corev1.Secret) (*corev1.ServiceAccount, error) {
	name, uid := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
	is := func(a *corev1.ServiceAccount) bool { return uid == "" || string(a.UID) == uid }
	account, err := c.accounts.ServiceAccounts(secret.Namespace).Get(name)
	if err == nil && is(account) {
		return account, nil
	}
	account, err = c.client.CoreV1().ServiceAccounts(secret.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !is(account) {
		return nil, nil
	}
	return account, err
}

func (c *Controller) remove(ctx context.Context, secret *corev1.Secret) error {
	err := c.client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s/%s, whose ServiceAccount is gone: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// fill writes what is missing of the Secret.
func (c *Controller) fill(ctx context.Context, secret *corev1.Secret, account *corev1.ServiceAccount) error {
	next := secret.DeepCopy()
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, corev1.ServiceAccountUIDKey, string(account.UID))
	next.Data[corev1.ServiceAccountRootCAKey] = c.rootCA
	next.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	whole := secret.Annotations[corev1.ServiceAccountUIDKey] != "" && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 &&
		bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], c.rootCA) && string(secret.Data[corev1.ServiceAccountNamespaceKey]) == secret.Namespace
	if whole {
		return nil
	}
	if len(next.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := c.token(ctx, secret, account)
		if err != nil {
			return fmt.Errorf("get a token for Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		next.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	if _, err := c.client.CoreV1().Secrets(secret.Namespace).Update(ctx, next, metav1.UpdateOptions{}); controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("fill in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

func (c *Controller) token(ctx context.Context, secret *corev1.Secret, account *corev1.ServiceAccount) (string, error) {
	seconds := life
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID},
	}}
	answer, err := c.client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}
