// Package pvcprotection keeps PersistentVolumeClaims, by a finalizer, while pods use them.
//
// Claim events lead to a sync of the claim, as does the end of a pod that uses it. The sync adds the finalizer, or removes it from a claim that is to be
// deleted and that no pod uses.
package pvcprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "persistentvolumeclaim-protection-controller"

// Finalizer is what keeps a claim.
const Finalizer = "kubernetes.io/pvc-protection"

// Controller protects claims.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	claims     corelisters.PersistentVolumeClaimLister
	podIndex   cache.Indexer
	protection controller.Protection[*corev1.PersistentVolumeClaim]
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	pods := core.Pods().Informer()
	if err := controller.IndexByClaim(pods); err != nil {
		return nil, err
	}
	c := &Controller{client: deps.Client, claims: core.PersistentVolumeClaims().Lister(), podIndex: pods.GetIndexer()}
	c.protection = controller.Protection[*corev1.PersistentVolumeClaim]{Finalizer: Finalizer, InUse: c.inUse, Update: c.update}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(core.PersistentVolumeClaims().Informer(), controller.Handlers[*corev1.PersistentVolumeClaim]{
		Add: func(claim *corev1.PersistentVolumeClaim) { c.AddObject(claim) }, Update: func(_, claim *corev1.PersistentVolumeClaim) { c.AddObject(claim) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(pods, controller.Handlers[*corev1.Pod]{
		Update: func(_, pod *corev1.Pod) {
			if shutDown(pod) {
				c.podEnded(pod)
			}
		},
		Delete: c.podEnded,
	})
}

func (c *Controller) podEnded(pod *corev1.Pod) {
	for _, name := range controller.ClaimNames(pod) {
		c.Add(pod.Namespace + "/" + name)
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if err := c.protection.Sync(ctx, claim); err != nil {
		return fmt.Errorf("protect PersistentVolumeClaim %s: %w", key, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	return err
}

// inUse looks for a pod that uses the claim. The cache can prove that there is one, but not that there is none: a pod may just have got its node.
func (c *Controller) inUse(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	using := func(pod *corev1.Pod) bool { return uses(pod, claim) }
	if slices.ContainsFunc(controller.PodsOfClaim(c.podIndex, claim.Namespace, claim.Name), using) {
		return true, nil
	}
	pods, err := c.client.CoreV1().Pods(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return using(&pod) }), nil
}

// uses tells whether a node may have mounted the claim for the pod. No node starts a pod that came to it when the claim was being deleted already.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		}
		return v.Ephemeral != nil && !shutDown(pod) && ephemeral.VolumeClaimName(pod, &v) == claim.Name && ephemeral.VolumeIsForPod(pod, claim) == nil
	})
}

// shutDown tells whether the node is done with a pod that is being deleted. Its ephemeral claims go before the pod does, when it is deleted in the foreground.
func shutDown(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}
