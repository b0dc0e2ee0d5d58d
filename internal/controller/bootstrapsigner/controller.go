// Package bootstrapsigner signs what the cluster says about itself to machines that join: the kubeconfig in the ConfigMap cluster-info of kube-public gets a signature by each bootstrap token that
// signs, so that who has the token can trust it. Events of the ConfigMap, of tokens' Secrets, and the ends of tokens lead to one sync, which computes all signatures anew.
package bootstrapsigner

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "bootstrap-signer-controller"

// Controller signs.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	clock      clock.PassiveClock
	own        []informers.SharedInformerFactory
	secrets    corelisters.SecretNamespaceLister
	configMaps corelisters.ConfigMapNamespaceLister
}

// New makes the controller. It has informers of its own, which see the tokens of kube-system and the one ConfigMap.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	tokens := informers.NewSharedInformerFactoryWithOptions(deps.Client, 0, informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(forget))
	info := informers.NewSharedInformerFactoryWithOptions(deps.Client, 0, informers.WithNamespace(metav1.NamespacePublic), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, bootstraptoken.ClusterInfo).String()
	}))
	secrets, configMaps := tokens.Core().V1().Secrets(), info.Core().V1().ConfigMaps()
	c := &Controller{
		client: deps.Client, clock: deps.Clock, own: []informers.SharedInformerFactory{tokens, info},
		secrets: secrets.Lister().Secrets(metav1.NamespaceSystem), configMaps: configMaps.Lister().ConfigMaps(metav1.NamespacePublic),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(secrets.Informer(), controller.OnAny(func(s *corev1.Secret) {
		if s.Type == bootstraptoken.SecretType {
			c.Add(bootstraptoken.ClusterInfo)
		}
	})); err != nil {
		return nil, err
	}
	return c, c.Handle(configMaps.Informer(), controller.OnAny(func(*corev1.ConfigMap) { c.Add(bootstraptoken.ClusterInfo) }))
}

// forget drops what is in Secrets that are no tokens.
func forget(obj any) (any, error) {
	if s, ok := obj.(*corev1.Secret); ok {
		s.ManagedFields = nil
		if s.Type != bootstraptoken.SecretType {
			s.Data = nil
		}
	}
	return obj, nil
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	for _, factory := range c.own {
		factory.Start(ctx.Done())
	}
	c.Loop.Run(ctx)
	for _, factory := range c.own {
		factory.Shutdown()
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	stored, err := c.configMaps.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	content, ok := stored.Data[bootstraptoken.KubeconfigKey]
	if !ok {
		return nil
	}
	data := maps.Clone(stored.Data)
	maps.DeleteFunc(data, func(key, _ string) bool { return strings.HasPrefix(key, bootstraptoken.SignaturePrefix) })
	tokens, err := c.tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		data[token.SignatureKey()] = token.Sign(content)
	}
	if maps.Equal(data, stored.Data) {
		return nil
	}
	changed := stored.DeepCopy()
	changed.Data = data
	_, err = c.client.CoreV1().ConfigMaps(stored.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	if err = controller.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write signatures into ConfigMap %s: %w", klog.KObj(stored), err)
	}
	return nil
}

// tokens are those that sign now. When the first of them ends, signatures are looked at again.
func (c *Controller) tokens(ctx context.Context) ([]bootstraptoken.Token, error) {
	secrets, err := c.secrets.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	now := c.clock.Now()
	var tokens []bootstraptoken.Token
	var next time.Duration
	for _, secret := range secrets {
		if secret.Type != bootstraptoken.SecretType {
			continue
		}
		s, err := bootstraptoken.Read(secret)
		if err != nil {
			klog.FromContext(ctx).V(3).Info("A bootstrap token cannot sign", "secret", klog.KObj(secret), "reason", err.Error())
			continue
		}
		if !s.Signs || s.Expired(now) {
			continue
		}
		tokens = append(tokens, s.Token)
		if left := s.Expires.Sub(now); !s.Expires.IsZero() && (next == 0 || left < next) {
			next = left
		}
	}
	if next > 0 {
		c.AddAfter(bootstraptoken.ClusterInfo, next)
	}
	return tokens, nil
}
