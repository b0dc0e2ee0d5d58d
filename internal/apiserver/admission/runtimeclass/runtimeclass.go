// Package runtimeclass is the admission plugin RuntimeClass: a pod that names a RuntimeClass gets its overhead, node selector and tolerations. A pod may not bring an
// overhead that is not its class's.
//
// Classes are read from the shared cache. What the cache does not have is asked of the API, since a class may be a moment older than its first pod.
package runtimeclass

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	nodelisters "k8s.io/client-go/listers/node/v1"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "RuntimeClass"

var (
	errOtherOverhead = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	errOwnOverhead   = errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
)

// Plugin admits pods.
type Plugin struct {
	*admission.Handler
	client  kubernetes.Interface
	classes nodelisters.RuntimeClassLister
}

// New makes the plugin.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory) *Plugin {
	classes := factory.Node().V1().RuntimeClasses()
	p := &Plugin{Handler: admission.NewHandler(admission.Create), client: client, classes: classes.Lister()}
	p.SetReadyFunc(classes.Informer().HasSynced)
	return p
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods"))
	if !ok || pod.Spec.RuntimeClassName == nil {
		return nil
	}
	class, err := p.class(ctx, *pod.Spec.RuntimeClassName)
	if err == nil {
		err = apply(class, &pod.Spec)
	}
	return target.Forbidden(a, err)
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods"))
	if !ok {
		return nil
	}
	if pod.Spec.RuntimeClassName == nil {
		return target.Forbidden(a, validate(nil, &pod.Spec))
	}
	class, err := p.class(ctx, *pod.Spec.RuntimeClassName)
	if err == nil {
		err = validate(class, &pod.Spec)
	}
	return target.Forbidden(a, err)
}

func (p *Plugin) class(ctx context.Context, name string) (*nodev1.RuntimeClass, error) {
	class, err := p.classes.Get(name)
	if apierrors.IsNotFound(err) {
		class, err = p.client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("pod rejected: RuntimeClass %q not found", name)
	}
	return class, err
}

// apply puts what the class asks for into the pod.
func apply(class *nodev1.RuntimeClass, pod *corev1.PodSpec) error {
	if class.Overhead != nil {
		if len(pod.Overhead) > 0 && !apiequality.Semantic.DeepEqual(pod.Overhead, class.Overhead.PodFixed) {
			return errOtherOverhead
		}
		pod.Overhead = class.Overhead.DeepCopy().PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	for key, value := range class.Scheduling.NodeSelector {
		if own, ok := pod.NodeSelector[key]; ok && own != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
		}
	}
	if pod.NodeSelector == nil {
		pod.NodeSelector = maps.Clone(class.Scheduling.NodeSelector)
	} else {
		maps.Copy(pod.NodeSelector, class.Scheduling.NodeSelector)
	}
	pod.Tolerations = mergeTolerations(pod.Tolerations, class.DeepCopy().Scheduling.Tolerations)
	return nil
}

// validate checks what other plugins may have changed since.
func validate(class *nodev1.RuntimeClass, pod *corev1.PodSpec) error {
	switch {
	case class == nil || class.Overhead == nil:
		if pod.Overhead != nil {
			return errOwnOverhead
		}
	case !apiequality.Semantic.DeepEqual(pod.Overhead, class.Overhead.PodFixed):
		return errOtherOverhead
	}
	return nil
}
