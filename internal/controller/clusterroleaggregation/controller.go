// Package clusterroleaggregation fills ClusterRoles that gather rules: a role with an aggregationRule has the rules of all roles whose labels its selectors match. An event of any
// ClusterRole leads to a sync of all that gather, since any of them may be concerned, one gathered role may itself gather, and there are few of them.
package clusterroleaggregation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "clusterrole-aggregation-controller"

// Controller fills ClusterRoles that gather rules.
type Controller struct {
	*controller.Loop
	client kubernetes.Interface
	roles  rbaclisters.ClusterRoleLister
}

// New makes the controller.
func New(ctx context.Context, deps controller.Deps) (controller.Controller, error) {
	roles := deps.Informers.Rbac().V1().ClusterRoles()
	c := &Controller{client: deps.Client, roles: roles.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	return c, c.Handle(roles.Informer(), controller.OnAny(func(*rbacv1.ClusterRole) { c.addAll(ctx) }))
}

func (c *Controller) addAll(ctx context.Context) {
	roles, err := c.roles.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "List ClusterRoles", "controller", Name)
	}
	for _, r := range roles {
		if r.AggregationRule != nil {
			c.Add(r.Name)
		}
	}
}

func (c *Controller) sync(ctx context.Context, name string) error {
	role, err := c.roles.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if role.AggregationRule == nil {
		return nil
	}
	rules, err := c.gather(role)
	if err != nil {
		return fmt.Errorf("gather the rules of ClusterRole %s: %w", name, err)
	}
	if equality.Semantic.DeepEqual(rules, role.Rules) {
		return nil
	}
	role = role.DeepCopy()
	role.Rules = rules
	_, err = c.client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
	if err = controller.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write the rules of ClusterRole %s: %w", name, err)
	}
	return nil
}

// gather returns the rules of the roles that each selector matches, in the order of their names, each rule once.
func (c *Controller) gather(target *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range target.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&target.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		roles, err := c.roles.List(selector)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
		for _, r := range roles {
			if r.Name == target.Name {
				continue
			}
			for _, rule := range r.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules, nil
}
