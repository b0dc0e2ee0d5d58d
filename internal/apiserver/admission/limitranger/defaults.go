package limitranger

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// annotation of a pod tells which of its requests and limits are not its own.
const annotation = "kubernetes.io/limit-ranger"

// applyDefaults gives containers the requests and limits that they do not have from a range.
func applyDefaults(r *corev1.LimitRange, pod *corev1.Pod) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range r.Spec.Limits {
		if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			fill(requests, item.DefaultRequest)
			fill(limits, item.Default)
		}
	}
	var notes []string
	for i := range pod.Spec.Containers {
		notes = append(notes, fillContainer(&pod.Spec.Containers[i], "container", requests, limits)...)
	}
	for i := range pod.Spec.InitContainers {
		notes = append(notes, fillContainer(&pod.Spec.InitContainers[i], "init container", requests, limits)...)
	}
	if len(notes) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotation] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
}

// fillContainer says, in the annotation's words, what it filled in.
func fillContainer(c *corev1.Container, word string, requests, limits corev1.ResourceList) []string {
	if c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	var notes []string
	if names := fill(c.Resources.Requests, requests); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("%s request for %s %s", strings.Join(names, ", "), word, c.Name))
	}
	if names := fill(c.Resources.Limits, limits); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("%s limit for %s %s", strings.Join(names, ", "), word, c.Name))
	}
	return notes
}

// fill adds to list what it lacks of the others, and returns their names in order.
func fill(list, others corev1.ResourceList) []string {
	var added []string
	for name, quantity := range others {
		if _, ok := list[name]; !ok {
			list[name] = quantity.DeepCopy()
			added = append(added, string(name))
		}
	}
	slices.Sort(added)
	return added
}
