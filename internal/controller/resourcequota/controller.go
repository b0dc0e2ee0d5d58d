// Package resourcequota keeps status.used of ResourceQuotas. Admission counts up when objects are made; this controller counts anew, and so also
// down, from what is there.
//
// Pods, Services and claims are read from the shared caches. What else a quota counts ("count/deployments.apps", "secrets") is watched by its
// metadata only, from the first quota on that asks for it. Events that can lower a count lead to syncs of the namespace's quotas. See
// README.md for the rules.
package resourcequota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "resourcequota-controller"

// resync is after what time a quota is counted again although nothing happened, as kube-controller-manager does by default.
const resync = 5 * time.Minute

// settleTime is how long after an object was added the quotas of its namespace are counted anew, once for all that come meanwhile. Admission has counted it, unless it
// was made before the quota had limits in its status; and the count then may have come before this controller's caches knew the object.
const settleTime = time.Second

// Controller counts what quotas limit.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	quotas   corelisters.ResourceQuotaLister
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	claims   corelisters.PersistentVolumeClaimLister
	counters *counters
	clock    clock.PassiveClock
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	c := &Controller{
		client: deps.Client, quotas: core.ResourceQuotas().Lister(), pods: core.Pods().Lister(), services: core.Services().Lister(),
		claims: core.PersistentVolumeClaims().Lister(), clock: deps.WithDefaults().Clock,
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.counters = newCounters(deps, c.namespaceGrew, c.namespaceChanged)
	if err := c.Handle(core.ResourceQuotas().Informer(), controller.Handlers[*corev1.ResourceQuota]{
		Add:    func(q *corev1.ResourceQuota) { c.AddObject(q) },
		Update: c.quotaUpdated,
	}); err != nil {
		return nil, err
	}
	if err := c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{
		Add: func(pod *corev1.Pod) { c.namespaceGrew(pod.Namespace) },
		Update: func(old, pod *corev1.Pod) {
			if finished(old) != finished(pod) || !equality.Semantic.DeepEqual(old.Spec, pod.Spec) {
				c.namespaceChanged(pod.Namespace)
			}
		},
		Delete: func(pod *corev1.Pod) { c.namespaceChanged(pod.Namespace) },
	}); err != nil {
		return nil, err
	}
	if err := c.Handle(core.Services().Informer(), changes(c, func(s *corev1.Service) any { return s.Spec })); err != nil {
		return nil, err
	}
	return c, c.Handle(core.PersistentVolumeClaims().Informer(), changes(c, func(p *corev1.PersistentVolumeClaim) any { return p.Spec }))
}

// changes reports the namespace of objects that are added, removed or whose content changed.
func changes[T metav1.Object](c *Controller, content func(T) any) cache.ResourceEventHandler {
	return controller.Handlers[T]{
		Add: func(obj T) { c.namespaceGrew(obj.GetNamespace()) },
		Update: func(old, obj T) {
			if !equality.Semantic.DeepEqual(content(old), content(obj)) {
				c.namespaceChanged(obj.GetNamespace())
			}
		},
		Delete: func(obj T) { c.namespaceChanged(obj.GetNamespace()) },
	}
}

func (c *Controller) quotaUpdated(old, q *corev1.ResourceQuota) {
	// What admission counts up needs no second count, unless somebody changed the limits.
	if !equality.Semantic.DeepEqual(old.Spec, q.Spec) || !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
		c.AddObject(q)
	}
}

func (c *Controller) namespaceChanged(namespace string) {
	for _, q := range c.quotasOf(namespace) {
		c.AddObject(q)
	}
}

func (c *Controller) namespaceGrew(namespace string) {
	for _, q := range c.quotasOf(namespace) {
		c.AddAfter(cache.MetaObjectToName(q).String(), settleTime)
	}
}

func (c *Controller) quotasOf(namespace string) []*corev1.ResourceQuota {
	quotas, err := c.quotas.ResourceQuotas(namespace).List(labels.Everything())
	utilruntime.Must(err) // a list of a cache does not fail
	return quotas
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.Loop.Run(ctx)
	c.counters.wait()
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	q, err := c.quotas.ResourceQuotas(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	c.AddAfter(key, resync)
	used, err := c.used(ctx, q)
	if err != nil {
		return fmt.Errorf("count what ResourceQuota %s limits: %w", key, err)
	}
	updated := q.DeepCopy()
	updated.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: used}
	if equality.Semantic.DeepEqual(updated.Status, q.Status) {
		return nil
	}
	_, err = c.client.CoreV1().ResourceQuotas(namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	return err
}

// used counts each resource that the quota limits.
func (c *Controller) used(ctx context.Context, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	total := corev1.ResourceList{}
	for name := range q.Spec.Hard {
		total[name] = *resource.NewQuantity(0, resource.DecimalSI)
	}
	for _, count := range []func(*corev1.ResourceQuota, adder) error{c.countPods, c.countServices, c.countClaims} {
		if err := count(q, adderTo(total)); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		gr, generic := counted(name)
		if !generic {
			continue
		}
		n, err := c.counters.count(ctx, gr, q.Namespace)
		if err != nil {
			return nil, err
		}
		total[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	return total, nil
}
