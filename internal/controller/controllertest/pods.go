package controllertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods lists all pods by name.
func (e *Env) Pods() []*corev1.Pod {
	list, err := e.Client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil // a fault that a test put in; the next look shows them
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}

// runPods plays scheduler and node agent: pods get a node, run and become ready; deleted ones end. It tells whether it did anything.
func (e *Env) runPods() bool {
	did := false
	for _, pod := range e.Pods() {
		switch {
		case pod.DeletionTimestamp != nil:
			did = e.endPod(pod) || did
		case pod.Status.Phase == corev1.PodPending:
			did = e.SetPod(pod, "run", "ready") == nil || did
		}
	}
	return did
}

// endPod is what a node does at the end of a deletion. Pods with finalizers stay until those are gone.
func (e *Env) endPod(pod *corev1.Pod) bool {
	if g := pod.DeletionGracePeriodSeconds; g != nil && *g == 0 {
		return false
	}
	now := int64(0)
	return e.Client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) == nil
}

// SetPod brings a pod into a state: "node=n1", "run", "ready", "notready", "succeed", "fail", "exit=3" (of all containers), "gone".
func (e *Env) SetPod(pod *corev1.Pod, states ...string) error {
	ctx := context.Background()
	pods := e.Client.CoreV1().Pods(pod.Namespace)
	pod = pod.DeepCopy()
	node := ""
	for _, state := range states {
		key, value, _ := strings.Cut(state, "=")
		switch key {
		case "node":
			node = value
		case "run":
			pod.Status.Phase = corev1.PodRunning
			if pod.Spec.NodeName == "" && node == "" {
				node = cmp.Or(target(pod), "n1")
			}
		case "ready":
			setReady(pod, corev1.ConditionTrue)
		case "notready":
			setReady(pod, corev1.ConditionFalse)
		case "succeed":
			pod.Status.Phase = corev1.PodSucceeded
			setReady(pod, corev1.ConditionFalse)
		case "fail":
			pod.Status.Phase = corev1.PodFailed
			setReady(pod, corev1.ConditionFalse)
		case "exit":
			setExit(pod, value)
		case "gone":
			e.endPod(pod)
			return nil
		default:
			return fmt.Errorf("no such state of a pod: %q", state)
		}
	}
	if node != "" && pod.Spec.NodeName == "" {
		pod.Spec.NodeName = node
		bound, err := pods.Update(ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		pod.ResourceVersion = bound.ResourceVersion
	}
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// target is the node that the pod's affinity names.
func target(pod *corev1.Pod) string {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				return field.Values[0]
			}
		}
	}
	return ""
}

func setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i >= 0 && pod.Status.Conditions[i].Status == status {
		return
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now())})
}

func setExit(pod *corev1.Pod, code string) {
	var exit int32
	fmt.Sscan(code, &exit)
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, FinishedAt: metav1.NewTime(time.Now())}}})
	}
}

// podLine is a pod in one line.
func podLine(pod *corev1.Pod) string {
	line := fmt.Sprintf("%s node=%s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		line += " ready"
	}
	if pod.DeletionTimestamp != nil {
		line += " deleting"
	}
	for _, ref := range pod.OwnerReferences {
		line += " owner=" + ref.Kind + "/" + ref.Name
	}
	return line
}
