package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Reasons of the events about pods that a controller makes and removes.
const (
	ReasonSuccessfulCreate = "SuccessfulCreate"
	ReasonSuccessfulDelete = "SuccessfulDelete"
	ReasonFailedCreate     = "FailedCreate"
	ReasonFailedDelete     = "FailedDelete"
)

// Owner is an object that owns pods: one of the API types.
type Owner interface {
	metav1.Object
	runtime.Object
}

// PodControl makes and removes pods for owners, and says so in events.
type PodControl struct {
	Client   kubernetes.Interface
	Recorder record.EventRecorder
}

// PodFromTemplate is a pod as a template of the owner wants it. Its name is left to the API server.
func PodFromTemplate(template *corev1.PodTemplateSpec, owner metav1.Object, kind schema.GroupVersionKind) *corev1.Pod {
	t := template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       owner.GetNamespace(),
			GenerateName:    owner.GetName() + "-",
			Labels:          maps.Clone(t.Labels),
			Annotations:     maps.Clone(t.Annotations),
			Finalizers:      t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: t.Spec,
	}
}

// Create makes the pod.
func (p PodControl) Create(ctx context.Context, owner Owner, pod *corev1.Pod) (*corev1.Pod, error) {
	if len(pod.Labels) == 0 {
		return nil, fmt.Errorf("the pod template of %s/%s has no labels, so that the pod could never be found again",
			owner.GetNamespace(), owner.GetName())
	}
	made, err := p.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		if !IsNamespaceTerminating(err) && !apierrors.IsAlreadyExists(err) && !errors.Is(err, context.Canceled) {
			p.Recorder.Eventf(owner, corev1.EventTypeWarning, ReasonFailedCreate, "Error creating: %v", err)
		}
		return nil, err
	}
	klog.FromContext(ctx).V(4).Info("Created pod", "pod", klog.KObj(made))
	p.Recorder.Eventf(owner, corev1.EventTypeNormal, ReasonSuccessfulCreate, "Created pod: %v", made.Name)
	return made, nil
}

// Delete removes the pod, but not another one of the same name. It returns NotFound if the pod is already gone.
func (p PodControl) Delete(ctx context.Context, owner Owner, pod *corev1.Pod) error {
	err := p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	switch {
	case err == nil:
		klog.FromContext(ctx).V(4).Info("Deleted pod", "pod", klog.KObj(pod))
		p.Recorder.Eventf(owner, corev1.EventTypeNormal, ReasonSuccessfulDelete, "Deleted pod: %v", pod.Name)
	case !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled):
		p.Recorder.Eventf(owner, corev1.EventTypeWarning, ReasonFailedDelete, "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return err
}

// Patch writes a patch of the pod's metadata.
func (p PodControl) Patch(ctx context.Context, pod *corev1.Pod, kind types.PatchType, patch []byte) error {
	_, err := p.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, kind, patch, metav1.PatchOptions{})
	return err
}
