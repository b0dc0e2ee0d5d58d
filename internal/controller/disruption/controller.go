// Package disruption keeps the status of PodDisruptionBudgets: how many pods may be disrupted at this moment. The eviction API reads it and counts
// down; this controller counts anew from the pods.
//
// Budget and pod events lead to syncs of the budgets that select the pod. A sync reads the pods and the sizes of their controllers from the
// caches and writes the status. If it cannot find out, it allows no disruption. See README.md for the rules.
package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	pdbhelper "k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "disruption-controller"

// deletionTimeout is how long an evicted pod may take until its deletion shows. After that the disruption is taken back.
const deletionTimeout = 2 * time.Minute

// Controller keeps the status of PodDisruptionBudgets.
type Controller struct {
	*controller.Loop
	client      kubernetes.Interface
	recorder    record.EventRecorder
	clock       clock.PassiveClock
	fresh       *controller.Freshness
	budgets     policylisters.PodDisruptionBudgetLister
	pods        corelisters.PodLister
	sets        appslisters.ReplicaSetLister
	deployments appslisters.DeploymentLister
	stateful    appslisters.StatefulSetLister
	controllers corelisters.ReplicationControllerLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core, apps, policy := deps.Informers.Core().V1(), deps.Informers.Apps().V1(), deps.Informers.Policy().V1()
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder("controllermanager"), clock: deps.Clock, fresh: controller.NewFreshness(),
		budgets: policy.PodDisruptionBudgets().Lister(), pods: core.Pods().Lister(), sets: apps.ReplicaSets().Lister(),
		deployments: apps.Deployments().Lister(), stateful: apps.StatefulSets().Lister(), controllers: core.ReplicationControllers().Lister(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	for _, informer := range []cache.SharedIndexInformer{apps.ReplicaSets().Informer(), apps.Deployments().Informer(),
		apps.StatefulSets().Informer(), core.ReplicationControllers().Informer()} {
		c.Reads(informer)
	}
	if err := c.Handle(policy.PodDisruptionBudgets().Informer(), controller.Handlers[*policyv1.PodDisruptionBudget]{
		Add: func(b *policyv1.PodDisruptionBudget) { c.AddObject(b) }, Update: func(_, b *policyv1.PodDisruptionBudget) { c.AddObject(b) },
		Delete: func(b *policyv1.PodDisruptionBudget) { c.fresh.Forget(b.UID) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podChanged, Delete: c.podChanged,
		Update: func(old, pod *corev1.Pod) {
			if !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {
				c.podChanged(old)
			}
			c.podChanged(pod)
		}})
}

func (c *Controller) podChanged(pod *corev1.Pod) {
	budgets, err := c.budgets.PodDisruptionBudgets(pod.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, b := range budgets {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && selector.Matches(labels.Set(pod.Labels)) {
			c.AddObject(b)
		}
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	cached, err := c.budgets.PodDisruptionBudgets(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if c.fresh.Stale(cached) {
		return nil // the event of our own write is on its way and brings us back
	}
	b := cached.DeepCopy()
	problem := c.count(b, cached)
	if problem != nil {
		b.Status.DisruptionsAllowed, b.Status.ObservedGeneration = 0, b.Generation
		c.fail(b, problem)
	} else {
		pdbhelper.UpdateDisruptionAllowedCondition(b)
	}
	if !equality.Semantic.DeepEqual(b.Status, cached.Status) {
		written, err := c.client.PolicyV1().PodDisruptionBudgets(namespace).UpdateStatus(ctx, b, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("write the status of PodDisruptionBudget %s: %w", key, err)
		}
		c.fresh.Wrote(written)
	}
	if problem != nil {
		return controller.Again(problem.Error())
	}
	return nil
}

// fail says in the condition why no disruption is allowed.
func (c *Controller) fail(b *policyv1.PodDisruptionBudget, problem error) {
	condition := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: problem.Error(), ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(c.clock.Now())}
	for i, old := range b.Status.Conditions {
		if old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			b.Status.Conditions[i] = condition
			return
		}
	}
	b.Status.Conditions = append(b.Status.Conditions, condition)
}
