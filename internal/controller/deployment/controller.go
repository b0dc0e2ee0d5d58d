// Package deployment rolls out Deployments: it makes one ReplicaSet for each version of the pod template and moves replicas from the old ones to the
// new one within the limits of the strategy.
//
// A sync reads the Deployment and its ReplicaSets from the caches and plans on them (type rollout): find or make the ReplicaSet of the
// current template, then scale. It ends with at most one write of the Deployment's status. ReplicaSet events and, for Recreate, the end of pods lead
// to the next sync. See README.md for the rules.
package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs, metrics and events.
const Name = "deployment-controller"

var gvk = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Controller rolls out Deployments.
type Controller struct {
	*controller.Loop
	client      kubernetes.Interface
	recorder    record.EventRecorder
	clock       clock.PassiveClock
	fresh       *controller.Freshness
	creations   *controller.Expectations
	deployments appslisters.DeploymentLister
	sets        appslisters.ReplicaSetLister
	setIndex    cache.Indexer
	podIndex    cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	apps := deps.Informers.Apps().V1()
	sets, pods := apps.ReplicaSets(), deps.Informers.Core().V1().Pods()
	for _, informer := range []cache.SharedIndexInformer{sets.Informer(), pods.Informer()} {
		if err := controller.IndexByOwner(informer); err != nil {
			return nil, err
		}
	}
	c := &Controller{
		client:      deps.Client,
		recorder:    deps.Recorder(Name),
		clock:       deps.Clock,
		fresh:       controller.NewFreshness(),
		creations:   controller.NewExpectations(deps.Clock),
		deployments: apps.Deployments().Lister(),
		sets:        sets.Lister(),
		setIndex:    sets.Informer().GetIndexer(),
		podIndex:    pods.Informer().GetIndexer(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(apps.Deployments().Informer(), controller.OnAny(func(d *appsv1.Deployment) { c.AddObject(d) })); err != nil {
		return nil, err
	}
	if err := c.Handle(sets.Informer(), controller.Handlers[*appsv1.ReplicaSet]{
		Add: c.setChanged, Update: c.setUpdated, Delete: c.setDeleted}); err != nil {
		return nil, err
	}
	return c, c.Handle(pods.Informer(), controller.Handlers[*corev1.Pod]{Update: c.podUpdated, Delete: c.podGone})
}

// ownerKey is the key of the Deployment that a ReplicaSet belongs to.
func ownerKey(rs *appsv1.ReplicaSet) (string, bool) {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil || ref.Kind != gvk.Kind || ref.APIVersion != gvk.GroupVersion().String() {
		return "", false
	}
	return rs.Namespace + "/" + ref.Name, true
}

func (c *Controller) setChanged(rs *appsv1.ReplicaSet) {
	if key, owned := ownerKey(rs); owned {
		c.creations.ObservedAdd(key, rs.UID)
		c.Add(key)
		return
	}
	if metav1.GetControllerOfNoCopy(rs) == nil {
		c.offer(rs)
	}
}

func (c *Controller) setUpdated(old, rs *appsv1.ReplicaSet) {
	if old.ResourceVersion == rs.ResourceVersion {
		return
	}
	before, owned := ownerKey(old)
	if after, _ := ownerKey(rs); owned && before != after {
		c.Add(before)
	}
	c.setChanged(rs)
}

func (c *Controller) setDeleted(rs *appsv1.ReplicaSet) {
	c.fresh.Forget(rs.UID)
	if key, owned := ownerKey(rs); owned {
		c.creations.ObservedGone(key, rs.UID)
		c.Add(key)
	}
}

// offer shows a ReplicaSet without a controller to the Deployments that may adopt it.
func (c *Controller) offer(rs *appsv1.ReplicaSet) {
	deployments, err := c.deployments.Deployments(rs.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, d := range deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(rs.Labels)) {
			c.AddObject(d)
		}
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if !controller.IsPodFinished(old) && controller.IsPodFinished(pod) {
		c.podGone(pod)
	}
}

// podGone wakes a Deployment that may be waiting for its old pods to end before it makes new ones.
func (c *Controller) podGone(pod *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return
	}
	rs, err := c.sets.ReplicaSets(pod.Namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID {
		return
	}
	key, owned := ownerKey(rs)
	if !owned {
		return
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	if d, err := c.deployments.Deployments(namespace).Get(name); err == nil && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		c.Add(key)
	}
}
