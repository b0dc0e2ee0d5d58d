// Package serviceaccount sees to it that every namespace has the ServiceAccount "default", as which its pods run unless they name another
// one. Namespace events, and the deletion of a "default", lead to a sync of the namespace, which makes what is missing.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "serviceaccount-controller"

// AccountName is the name of the ServiceAccount that each namespace gets.
const AccountName = "default"

// Controller makes default ServiceAccounts.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	c := &Controller{client: deps.Client, namespaces: core.Namespaces().Lister(), accounts: core.ServiceAccounts().Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(core.Namespaces().Informer(), controller.Handlers[*corev1.Namespace]{
		Add:    func(ns *corev1.Namespace) { c.Add(ns.Name) },
		Update: func(_, ns *corev1.Namespace) { c.Add(ns.Name) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.ServiceAccounts().Informer(), controller.Handlers[*corev1.ServiceAccount]{
		Delete: func(sa *corev1.ServiceAccount) { c.Add(sa.Namespace) },
	})
}

func (c *Controller) sync(ctx context.Context, namespace string) error {
	ns, err := c.namespaces.Get(namespace)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ns.Status.Phase == corev1.NamespaceTerminating || ns.DeletionTimestamp != nil {
		return nil
	}
	if _, err := c.accounts.ServiceAccounts(namespace).Get(AccountName); err == nil {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: AccountName, Namespace: namespace}}
	_, err = c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if err = controller.IgnoreAlreadyExists(err); err == nil || controller.IsNamespaceTerminating(err) {
		return nil
	}
	return fmt.Errorf("create ServiceAccount %s/%s: %w", namespace, AccountName, err)
}
