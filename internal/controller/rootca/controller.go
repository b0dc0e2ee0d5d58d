// Package rootca publishes the certificates that verify the API server as the ConfigMap kube-root-ca.crt in every namespace, from where pods
// mount them beside their token. Namespace events and events of these ConfigMaps lead to a sync of the namespace, which makes
// the ConfigMap or puts its content right.
//
// ConfigMaps can be many and large. This controller has an informer of its own that sees only those of this name.
package rootca

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "root-ca-certificate-publisher-controller"

// What is published.
const (
	ConfigMapName         = "kube-root-ca.crt"
	dataKey               = "ca.crt"
	descriptionAnnotation = "kubernetes.io/description"
	description           = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal " +
		"service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Controller publishes the root certificates.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	own        informers.SharedInformerFactory
	namespaces corelisters.NamespaceLister
	configMaps corelisters.ConfigMapLister
	data       map[string]string
}

// New makes the controller. deps.RootCA must be there.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	if len(deps.RootCA) == 0 {
		return nil, errors.New("controller " + Name + ": no root certificates were given, so that pods could not verify the API server")
	}
	own := informers.NewSharedInformerFactoryWithOptions(deps.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigMapName).String()
	}))
	namespaces, configMaps := deps.Informers.Core().V1().Namespaces(), own.Core().V1().ConfigMaps()
	c := &Controller{
		client: deps.Client, own: own, namespaces: namespaces.Lister(), configMaps: configMaps.Lister(),
		data: map[string]string{dataKey: string(deps.RootCA)},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(namespaces.Informer(), controller.Handlers[*corev1.Namespace]{
		Add:    func(ns *corev1.Namespace) { c.Add(ns.Name) },
		Update: func(_, ns *corev1.Namespace) { c.Add(ns.Name) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(configMaps.Informer(), controller.Handlers[*corev1.ConfigMap]{
		Update: func(_, cm *corev1.ConfigMap) { c.Add(cm.Namespace) },
		Delete: func(cm *corev1.ConfigMap) { c.Add(cm.Namespace) },
	})
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.own.Start(ctx.Done())
	c.Loop.Run(ctx)
	c.own.Shutdown()
}

func (c *Controller) sync(ctx context.Context, namespace string) error {
	ns, err := c.namespaces.Get(namespace)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ns.Status.Phase == corev1.NamespaceTerminating || ns.DeletionTimestamp != nil {
		return nil
	}
	cm, err := c.configMaps.ConfigMaps(namespace).Get(ConfigMapName)
	switch {
	case apierrors.IsNotFound(err):
		err = c.create(ctx, namespace)
	case err == nil && (!maps.Equal(cm.Data, c.data) || cm.Annotations[descriptionAnnotation] != description):
		err = c.update(ctx, cm.DeepCopy())
	}
	if err == nil || controller.IsNamespaceTerminating(err) {
		return nil
	}
	return fmt.Errorf("publish root certificates as ConfigMap %s/%s: %w", namespace, ConfigMapName, err)
}

func (c *Controller) create(ctx context.Context, namespace string) error {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigMapName, Namespace: namespace, Annotations: map[string]string{descriptionAnnotation: description},
		},
		Data: c.data,
	}
	_, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{})
	return controller.IgnoreAlreadyExists(err)
}

func (c *Controller) update(ctx context.Context, cm *corev1.ConfigMap) error {
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Annotations[descriptionAnnotation] = description
	cm.Data = c.data
	_, err := c.client.CoreV1().ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
	return err
}
