package embedded

import (
	"context"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodSandboxStatus tells how a pod is.
func (r *Runtime) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	response := &cri.PodSandboxStatusResponse{Status: r.sandboxStatus(s), Timestamp: r.config.Clock.Now().UnixNano()}
	for _, c := range r.containersOf(s.record.ID) {
		response.ContainersStatuses = append(response.ContainersStatuses, r.containerStatus(c))
	}
	return response, nil
}

func (r *Runtime) sandboxStatus(s *sandbox) *cri.PodSandboxStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := &cri.PodSandboxStatus{
		Id:          s.record.ID,
		Metadata:    s.config.Metadata,
		State:       s.state(),
		CreatedAt:   s.record.CreatedAt.UnixNano(),
		Network:     &cri.PodSandboxNetworkStatus{},
		Linux:       &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: s.namespaces()}},
		Labels:      s.config.Labels,
		Annotations: s.config.Annotations,
	}
	for i, address := range s.record.Addresses {
		if i == 0 {
			result.Network.Ip = address
		} else {
			result.Network.AdditionalIps = append(result.Network.AdditionalIps, &cri.PodIP{Ip: address})
		}
	}
	return result
}

// state is the CRI's view. Runtime.mu is held.
func (s *sandbox) state() cri.PodSandboxState {
	if s.record.Ready {
		return cri.PodSandboxState_SANDBOX_READY
	}
	return cri.PodSandboxState_SANDBOX_NOTREADY
}
