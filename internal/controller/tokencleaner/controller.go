// Package tokencleaner deletes bootstrap tokens that have expired. Events of their Secrets lead to a sync of the Secret, which deletes it or waits until it expires.
package tokencleaner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "token-cleaner-controller"

// Controller deletes expired tokens.
type Controller struct {
	*controller.Loop
	client  kubernetes.Interface
	clock   clock.PassiveClock
	own     informers.SharedInformerFactory
	secrets corelisters.SecretNamespaceLister
}

// New makes the controller. Secrets are many and large, so that it has an informer of its own for those of kube-system, which keeps what tokens say alone.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	own := informers.NewSharedInformerFactoryWithOptions(deps.Client, 0, informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(forget))
	secrets := own.Core().V1().Secrets()
	c := &Controller{client: deps.Client, clock: deps.Clock, own: own, secrets: secrets.Lister().Secrets(metav1.NamespaceSystem)}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	add := func(s *corev1.Secret) {
		if s.Type == bootstraptoken.SecretType {
			c.Add(s.Name)
		}
	}
	return c, c.Handle(secrets.Informer(), controller.Handlers[*corev1.Secret]{Add: add, Update: func(_, s *corev1.Secret) { add(s) }})
}

// forget drops what is in Secrets, but the time when a token expires.
func forget(obj any) (any, error) {
	s, ok := obj.(*corev1.Secret)
	if !ok {
		return obj, nil
	}
	expiration, ok := s.Data[bootstraptoken.ExpirationKey]
	s.Data, s.ManagedFields = nil, nil
	if ok && s.Type == bootstraptoken.SecretType {
		s.Data = map[string][]byte{bootstraptoken.ExpirationKey: expiration}
	}
	return s, nil
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.own.Start(ctx.Done())
	c.Loop.Run(ctx)
	c.own.Shutdown()
}

func (c *Controller) sync(ctx context.Context, name string) error {
	secret, err := c.secrets.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if secret.Type != bootstraptoken.SecretType || secret.DeletionTimestamp != nil {
		return nil
	}
	// What is no time never was good for anything.
	expires, err := bootstraptoken.Expiry(secret)
	if err == nil && expires.IsZero() {
		return nil
	}
	if left := expires.Sub(c.clock.Now()); err == nil && left > 0 {
		c.AddAfter(name, max(left, time.Millisecond))
		return nil
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}}
	err = c.client.CoreV1().Secrets(secret.Namespace).Delete(ctx, name, options)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete expired bootstrap token %s: %w", cache.MetaObjectToName(secret), err)
}
