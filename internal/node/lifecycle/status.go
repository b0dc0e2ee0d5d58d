package lifecycle

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statuses are the container statuses of a pod by their lists.
type statuses struct {
	init, ordinary, ephemeral []v1.ContainerStatus
}

// status builds the whole status that the agent answers for. Conditions and fields of others (PodScheduled, nominatedNodeName ...) are
// taken over as they are.
func (d *decider) status() v1.PodStatus {
	old := &d.pod.Status
	list := d.containerStatuses()
	ended := d.plan.Stage == StageEnded
	if ended {
		d.finish(&list)
	}
	start := metav1.NewTime(d.mem.StartTime)
	status := v1.PodStatus{
		ObservedGeneration:          d.pod.Generation,
		StartTime:                   &start,
		QOSClass:                    QOSClass(d.pod),
		InitContainerStatuses:       list.init,
		ContainerStatuses:           list.ordinary,
		EphemeralContainerStatuses:  list.ephemeral,
		Reason:                      old.Reason,
		Message:                     old.Message,
		NominatedNodeName:           old.NominatedNodeName,
		ResourceClaimStatuses:       old.ResourceClaimStatuses,
		ExtendedResourceClaimStatus: old.ExtendedResourceClaimStatus,
	}
	status.Phase = d.phase(list, ended && d.mem.Ending != nil || ended && d.pod.DeletionTimestamp != nil)
	if e := d.mem.Ending; e != nil && e.Phase != "" {
		status.Phase, status.Reason, status.Message = e.Phase, e.Reason, e.Message
	}
	if ended && status.Phase != v1.PodSucceeded && status.Phase != v1.PodFailed {
		status.Phase = v1.PodFailed
	}
	if old.Phase == v1.PodSucceeded || old.Phase == v1.PodFailed {
		status.Phase = old.Phase // a finished pod stays finished
	}
	d.addresses(&status)
	d.conditions(&status)
	if e := d.mem.Ending; e != nil && e.Refused {
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses = nil, nil, nil
	}
	return status
}

// addresses fills in the node's and the pod's addresses. A pod's address stays on record after its sandbox is gone.
func (d *decider) addresses(status *v1.PodStatus) {
	for _, ip := range d.Host.IPs {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: ip})
	}
	if len(d.Host.IPs) > 0 {
		status.HostIP = d.Host.IPs[0]
	}
	var ips []string
	if d.pod.Spec.HostNetwork {
		ips = d.Host.IPs
	} else if s := d.Observed.current(); s != nil {
		ips = s.IPs
	}
	if len(ips) == 0 {
		status.PodIP, status.PodIPs = d.pod.Status.PodIP, d.pod.Status.PodIPs
		return
	}
	status.PodIP = ips[0]
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: ip})
	}
}

func (d *decider) containerStatuses() statuses {
	var list statuses
	for i := range d.pod.Spec.InitContainers {
		list.init = append(list.init, d.containerStatus(&d.pod.Spec.InitContainers[i], kindInit))
	}
	for i := range d.pod.Spec.Containers {
		list.ordinary = append(list.ordinary, d.containerStatus(&d.pod.Spec.Containers[i], kindOrdinary))
	}
	for i := range d.pod.Spec.EphemeralContainers {
		c := (*v1.Container)(&d.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		list.ephemeral = append(list.ephemeral, d.containerStatus(c, kindEphemeral))
	}
	return list
}

// oldStatus is what the API has about a container, nil when nothing.
func (d *decider) oldStatus(name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{d.pod.Status.InitContainerStatuses, d.pod.Status.ContainerStatuses, d.pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Reason and message of containers whose end nobody saw.
const (
	reasonUnknown  = "ContainerStatusUnknown"
	messageUnknown = "The container could not be located when the pod was terminated"
	exitUnknown    = 137
)

// finish makes the statuses of an ended pod final: no container runs any more. Containers that were never begun keep their waiting state
// when the pod was not even initialised; otherwise nobody knows what became of them.
func (d *decider) finish(list *statuses) {
	if d.mem.Ending != nil && d.mem.Ending.Phase == v1.PodFailed && len(d.Observed.Containers) == 0 && len(d.Observed.Sandboxes) == 0 {
		return // refused or ended before anything was made
	}
	initialized := true
	for i := range list.init {
		done := list.init[i].Ready || IsSidecar(&d.pod.Spec.InitContainers[i])
		initialized = initialized && done
		end(&list.init[i], false)
		list.init[i].Ready = done && !IsSidecar(&d.pod.Spec.InitContainers[i])
	}
	for i := range list.ordinary {
		end(&list.ordinary[i], initialized)
	}
	for i := range list.ephemeral {
		end(&list.ephemeral[i], false)
	}
}

// end turns the status of a container that doesn't run any more into a final one.
func end(s *v1.ContainerStatus, begun bool) {
	s.Ready = false
	if s.Started != nil {
		s.Started = new(bool)
	}
	last := s.LastTerminationState.Terminated
	switch {
	case s.State.Terminated != nil:
	case s.State.Waiting != nil && last != nil:
		// It was to be restarted and will not be: its last end is its end.
		s.State, s.LastTerminationState = v1.ContainerState{Terminated: last}, v1.ContainerState{}
	case begun || s.State.Running != nil || s.ContainerID != "":
		s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: reasonUnknown, Message: messageUnknown, ExitCode: exitUnknown,
		}}
	}
}
