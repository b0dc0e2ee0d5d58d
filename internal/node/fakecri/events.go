package fakecri

import (
	"context"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// send tells every listener. A listener that doesn't keep up loses events, as with a real runtime: the relist is for that.
func (r *Runtime) send(s *sandbox, id string, t cri.ContainerEventType) {
	e := &cri.ContainerEventResponse{ContainerId: id, ContainerEventType: t, CreatedAt: r.clock.Now().UnixNano(), PodSandboxStatus: s.status()}
	for l := range r.listeners {
		select {
		case l <- e:
		default:
		}
	}
}

// GetContainerEvents streams what happens from now on.
func (r *Runtime) GetContainerEvents(_ *cri.GetEventsRequest, stream cri.RuntimeService_GetContainerEventsServer) error {
	if err := r.begin(stream.Context(), "GetContainerEvents", ""); err != nil {
		return err
	}
	l := make(chan *cri.ContainerEventResponse, 100)
	r.mu.Lock()
	r.listeners[l] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, l)
	}()
	for {
		select {
		case <-stream.Context().Done():
			return context.Cause(stream.Context())
		case e := <-l:
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}
