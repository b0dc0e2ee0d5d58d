package bind

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Client writes the scheduler's decisions to the API server.
type Client struct {
	Client kubernetes.Interface
	// Recorders are those of the scheduler names.
	Recorders map[string]events.EventRecorder
	Clock     clock.PassiveClock
}

// Bind binds a pod to a node and records the event.
func (c *Client) Bind(ctx context.Context, pod *v1.Pod, node string) error {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := c.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, node, err)
	}
	klog.FromContext(ctx).V(2).Info("Bound pod", "pod", klog.KObj(pod), "node", node)
	c.Recorders[pod.Spec.SchedulerName].Eventf(pod, nil, v1.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned %s/%s to %s",
		pod.Namespace, pod.Name, node)
	return nil
}

// Report is why a pod is not scheduled.
type Report struct {
	// Reason is that of the condition: Unschedulable or SchedulerError.
	Reason, Message string
	// Nominated is the node on which preemption makes room; Clear takes an earlier nomination back.
	Nominated string
	Clear     bool
}

// Fail records on a pod that it could not be scheduled: an event each time, the condition if it is not there yet.
func (c *Client) Fail(ctx context.Context, pod *v1.Pod, report Report) error {
	c.Recorders[pod.Spec.SchedulerName].Eventf(pod, nil, v1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", report.Message)
	patch, changes := conditionPatch(pod, report, metav1.NewTime(c.Clock.Now()))
	if !changes {
		return nil
	}
	return c.patch(ctx, pod, patch)
}

// Evict deletes a pod to make room for another one on its node. It is no error if the pod is gone already.
func (c *Client) Evict(ctx context.Context, victim *v1.Pod, preemptor *v1.Pod, node string) error {
	pods := c.Client.CoreV1().Pods(victim.Namespace)
	patch := statusPatch{}
	patch.Metadata.UID = victim.UID
	patch.Status.Conditions = []v1.PodCondition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message:            preemptor.Spec.SchedulerName + ": preempting to accommodate a higher priority pod",
		LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}}
	err := c.patch(ctx, victim, patch)
	if err == nil {
		err = pods.Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("preempting pod %s/%s on node %s: %w", victim.Namespace, victim.Name, node, err)
	}
	c.Recorders[preemptor.Spec.SchedulerName].Eventf(victim, preemptor, v1.EventTypeNormal, "Preempted", "Preempting", "Preempted by pod %v on node %v",
		preemptor.UID, node)
	return nil
}

// ClearNomination takes a pod's nomination back because another of higher priority was given the room.
func (c *Client) ClearNomination(ctx context.Context, pod *v1.Pod) error {
	patch := statusPatch{}
	patch.Metadata.UID, patch.Status.Nominated = pod.UID, new(string)
	return c.patch(ctx, pod, patch)
}

// patch writes a pod's status.
func (c *Client) patch(ctx context.Context, pod *v1.Pod, patch statusPatch) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, data,
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// statusPatch is a strategic merge patch of a pod's status. The UID keeps it from a later pod of the same name.
type statusPatch struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Conditions []v1.PodCondition `json:"conditions,omitempty"`
		Nominated  *string           `json:"nominatedNodeName,omitempty"`
	} `json:"status"`
}

func conditionPatch(pod *v1.Pod, report Report, now metav1.Time) (patch statusPatch, changes bool) {
	patch.Metadata.UID = pod.UID
	if report.Nominated != "" && report.Nominated != pod.Status.NominatedNodeName {
		patch.Status.Nominated, changes = &report.Nominated, true
	}
	if report.Clear && pod.Status.NominatedNodeName != "" {
		patch.Status.Nominated, changes = new(string), true
	}
	condition := v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: report.Reason, Message: report.Message,
		LastTransitionTime: now, ObservedGeneration: pod.Generation,
	}
	for i := range pod.Status.Conditions {
		old := &pod.Status.Conditions[i]
		if old.Type != v1.PodScheduled {
			continue
		}
		if old.Status == condition.Status && old.Reason == condition.Reason && old.Message == condition.Message {
			return patch, changes
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	patch.Status.Conditions = []v1.PodCondition{condition}
	return patch, true
}
