// Package priority is the admission plugin Priority: pods and pod groups get the number and the preemption policy of their PriorityClass, or of the default class. Only one class can be the
// default.
//
// Classes are read from the shared cache; one that it does not have is asked of the API, as a class may be a moment older than its first pod.
package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "Priority"

// Plugin admits pods, pod groups and priority classes.
type Plugin struct {
	*admission.Handler
	client  kubernetes.Interface
	classes schedulinglisters.PriorityClassLister
}

// New makes the plugin.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory) *Plugin {
	classes := factory.Scheduling().V1().PriorityClasses()
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), client: client, classes: classes.Lister()}
	p.SetReadyFunc(classes.Informer().HasSynced)
	return p
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods")); ok {
		if old, ok := a.GetOldObject().(*corev1.Pod); ok {
			keep(&pod.Spec, &old.Spec)
			return nil
		}
		return target.Forbidden(a, p.admitPod(ctx, &pod.Spec))
	}
	if group, ok := target.Of[*schedulingv1beta1.PodGroup](a, schedulingv1beta1.Resource("podgroups")); ok && a.GetOperation() == admission.Create {
		return target.Forbidden(a, p.admitGroup(ctx, &group.Spec))
	}
	return nil
}

// keep: who updates a pod need not repeat what was filled in at its creation.
func keep(pod, old *corev1.PodSpec) {
	if pod.Priority == nil {
		pod.Priority = old.Priority
	}
	if pod.PreemptionPolicy == nil {
		pod.PreemptionPolicy = old.PreemptionPolicy
	}
}

func (p *Plugin) admitPod(ctx context.Context, pod *corev1.PodSpec) error {
	class, err := p.class(ctx, pod.PriorityClassName)
	if err != nil {
		return err
	}
	if pod.Priority != nil && *pod.Priority != class.Value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
			*pod.Priority, class.Value)
	}
	if class.PreemptionPolicy != nil && pod.PreemptionPolicy != nil && *pod.PreemptionPolicy != *class.PreemptionPolicy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			*pod.PreemptionPolicy, *class.PreemptionPolicy)
	}
	pod.PriorityClassName, pod.Priority = class.Name, ptr.To(class.Value)
	if class.PreemptionPolicy != nil {
		pod.PreemptionPolicy = ptr.To(*class.PreemptionPolicy)
	}
	return nil
}

func (p *Plugin) admitGroup(ctx context.Context, group *schedulingv1beta1.PodGroupSpec) error {
	class, err := p.class(ctx, group.PriorityClassName)
	if err != nil {
		return err
	}
	if group.Priority != nil && *group.Priority != class.Value {
		return fmt.Errorf("priority set in the pod group (%d) must match the priority computed (%d) based on the priority class set in the spec", *group.Priority, class.Value)
	}
	group.PriorityClassName, group.Priority = class.Name, ptr.To(class.Value)
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	class, ok := target.Of[*schedulingv1.PriorityClass](a, schedulingv1.Resource("priorityclasses"))
	if !ok || !class.GlobalDefault {
		return nil
	}
	other, err := p.defaultClass()
	if err != nil || other == nil || a.GetOperation() == admission.Update && other.Name == class.Name {
		return target.Forbidden(a, err)
	}
	return target.Forbidden(a, fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", other.Name))
}

// class returns the class of that name or, for no name, the default one; where there is none, it stands for priority 0.
func (p *Plugin) class(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		class, err := p.defaultClass()
		if class == nil && err == nil {
			class = &schedulingv1.PriorityClass{PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}
		}
		return class, err
	}
	class, err := p.classes.Get(name)
	if apierrors.IsNotFound(err) {
		class, err = p.client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("no PriorityClass with name %v was found", name)
	}
	return class, err
}

// defaultClass is nil when there is none. Two that were made at the same moment may both be marked: the lower one counts.
func (p *Plugin) defaultClass() (*schedulingv1.PriorityClass, error) {
	all, err := p.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var found *schedulingv1.PriorityClass
	for _, class := range all {
		if class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found, nil
}
