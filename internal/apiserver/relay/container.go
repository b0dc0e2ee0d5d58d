package relay

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultContainerAnnotation names the container that is meant when none is named.
const DefaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// containerNames are the names of the init, ordinary and ephemeral containers.
func containerNames(pod *corev1.Pod) (initial, ordinary, ephemeral []string) {
	for _, c := range pod.Spec.InitContainers {
		initial = append(initial, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		ordinary = append(ordinary, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, c.Name)
	}
	return initial, ordinary, ephemeral
}

// chooseContainer returns the container that name means: itself when the pod has it, the only one when name is empty.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	initial, ordinary, ephemeral := containerNames(pod)
	if name != "" {
		for _, names := range [][]string{ordinary, initial, ephemeral} {
			for _, n := range names {
				if n == name {
					return name, nil
				}
			}
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	if len(ordinary) == 1 && len(initial)+len(ephemeral) == 0 {
		return ordinary[0], nil
	}
	if name := pod.Annotations[DefaultContainerAnnotation]; name != "" {
		return chooseContainer(pod, name)
	}
	if len(ordinary) == 1 {
		return ordinary[0], nil
	}
	message := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", pod.Name, strings.Join(ordinary, " "))
	if len(initial) > 0 {
		message += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(initial, " "))
	}
	return "", apierrors.NewBadRequest(message)
}
