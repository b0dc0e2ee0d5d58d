package lifecycle

import v1 "k8s.io/api/core/v1"

// phase sums the containers up. With ended nothing will be restarted any more, whatever the policy says.
func (d *decider) phase(list statuses, ended bool) v1.PodPhase {
	initializing, failed := d.initPhase(list.init)
	if failed {
		return v1.PodFailed
	}
	var waiting, running, stopped, succeeded, restarting int
	for i := range list.ordinary {
		s := &list.ordinary[i]
		switch {
		case s.State.Running != nil:
			running++
		case s.State.Terminated != nil:
			stopped++
			if s.State.Terminated.ExitCode == 0 {
				succeeded++
			}
			if restarts(d.pod, &d.pod.Spec.Containers[i], s.State.Terminated.ExitCode, false) {
				restarting++
			}
		case s.LastTerminationState.Terminated != nil:
			stopped++
			restarting++
		default:
			waiting++
		}
	}
	switch {
	case initializing && running+stopped == 0:
		return v1.PodPending
	case waiting > 0:
		return v1.PodPending
	case running > 0 || restarting > 0 && !ended:
		return v1.PodRunning
	case stopped > 0 && stopped == succeeded:
		return v1.PodSucceeded
	case stopped > 0:
		return v1.PodFailed
	default:
		return v1.PodPending
	}
}

// initPhase tells whether initialisation is still going on, and whether it has failed for good.
func (d *decider) initPhase(list []v1.ContainerStatus) (initializing, failed bool) {
	for i := range list {
		s, c := &list[i], &d.pod.Spec.InitContainers[i]
		if IsSidecar(c) {
			if s.Started == nil || !*s.Started {
				initializing = true
			}
			continue
		}
		if s.State.Terminated == nil {
			initializing = true
			continue
		}
		code := s.State.Terminated.ExitCode
		if code != 0 {
			initializing = true
			failed = failed || !restarts(d.pod, c, code, true)
		}
	}
	return initializing, failed
}
