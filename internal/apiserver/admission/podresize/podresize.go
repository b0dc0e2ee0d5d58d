// Package podresize is the admission plugin PodResizeValidator: a pod on a node is not resized beyond what the node has at all, nor on a system that cannot do it.
package podresize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "PodResizeValidator"

// Causes of a refusal, as clients read them.
const (
	causeCapacity metav1.CauseType = "NodeCapacity"
	causePlatform metav1.CauseType = "UnsupportedPlatform"
)

// Plugin admits the resizing of pods. That is rare enough for asking the API for the node, instead of keeping all nodes.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
}

// New makes the plugin.
func New(client kubernetes.Interface) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Update), client: client}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := target.OfSub[*corev1.Pod](a, corev1.Resource("pods"), "resize")
	old, also := a.GetOldObject().(*corev1.Pod)
	if !ok || !also || pod.Spec.NodeName == "" || pod.Generation == old.Generation {
		return nil
	}
	node, err := p.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return target.Forbidden(a, fmt.Errorf("node %q not found", pod.Spec.NodeName))
	case err != nil:
		return target.Forbidden(a, fmt.Errorf("failed to get node %q: %w", pod.Spec.NodeName, err))
	}
	if system, ok := node.Labels[corev1.LabelOSStable]; ok && system != string(corev1.Linux) {
		return refuse(a, causePlatform, fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, system))
	}
	if err := fits(pod, node.Status.Allocatable); err != nil {
		return refuse(a, causeCapacity, err)
	}
	return nil
}

func fits(pod *corev1.Pod, allocatable corev1.ResourceList) error {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	var short []string
	if requests.Cpu().Cmp(*allocatable.Cpu()) > 0 {
		short = append(short, fmt.Sprintf("cpu, requested: %d, allocatable: %d", requests.Cpu().MilliValue(), allocatable.Cpu().MilliValue()))
	}
	if requests.Memory().Cmp(*allocatable.Memory()) > 0 {
		short = append(short, fmt.Sprintf("memory, requested: %d, allocatable: %d", requests.Memory().Value(), allocatable.Memory().Value()))
	}
	if len(short) > 0 {
		return fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(short, "; "))
	}
	return nil
}

// refuse forbids with a cause.
func refuse(a admission.Attributes, cause metav1.CauseType, err error) error {
	answer := target.Forbidden(a, err)
	var status *apierrors.StatusError
	if errors.As(answer, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return answer
}
