// Package ephemeralvolume makes the PersistentVolumeClaims of pods' generic ephemeral volumes. Pod events, and the deletion of such a claim, lead to a sync of
// the pod, which makes what is missing. The claim belongs to the pod and goes with it.
package ephemeralvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "ephemeral-volume-controller"

var (
	attempts = controller.Counter("ephemeral_volume_controller", "create_total", "Attempts to create the PersistentVolumeClaim of a pod.")
	failures = controller.Counter("ephemeral_volume_controller", "create_failures_total", "Attempts to create the PersistentVolumeClaim of a pod that failed.")
)

// Controller makes claims for pods.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	recorder record.EventRecorder
	pods     corelisters.PodLister
	claims   corelisters.PersistentVolumeClaimLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder("ephemeral_volume"), pods: core.Pods().Lister(), claims: core.PersistentVolumeClaims().Lister(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	// The volumes of a pod never change, so that its updates tell nothing.
	if err := c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: func(pod *corev1.Pod) {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) {
			c.AddObject(pod)
		}
	}}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.PersistentVolumeClaims().Informer(), controller.Handlers[*corev1.PersistentVolumeClaim]{
		Delete: func(claim *corev1.PersistentVolumeClaim) {
			if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
				c.Add(claim.Namespace + "/" + owner.Name)
			}
		},
	})
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		err := c.ensure(ctx, pod, volume)
		if err == nil || controller.IsNamespaceTerminating(err) {
			continue
		}
		if !controller.IsAgain(err) {
			c.recorder.Event(pod, corev1.EventTypeWarning, "FailedBinding", fmt.Sprintf("ephemeral volume %s: %v", volume.Name, err))
		}
		errs = append(errs, fmt.Errorf("pod %s, ephemeral volume %s: %w", key, volume.Name, err))
	}
	return errors.Join(errs...)
}

// ensure makes the claim of a volume. A claim of that name that is not the pod's must not be used: its data is somebody else's.
func (c *Controller) ensure(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) error {
	name := ephemeral.VolumeClaimName(pod, volume)
	claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
	if err == nil {
		return ephemeral.VolumeIsForPod(pod, claim)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	template := volume.Ephemeral.VolumeClaimTemplate
	owner := metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	claim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations, OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: template.Spec,
	}
	attempts.WithLabelValues().Inc()
	_, err = c.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		failures.WithLabelValues().Inc()
	}
	if apierrors.IsAlreadyExists(err) {
		return controller.Again("the cache does not show PersistentVolumeClaim " + name + " yet")
	}
	return err
}
