package embedded

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// broadcaster hands events to all who listen. A listener that is slow loses nothing and holds nobody up: its events wait for it.
type broadcaster struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	closed    bool
}

type listener struct {
	pending []*cri.ContainerEventResponse
	wake    chan struct{}
}

func (b *broadcaster) publish(event *cri.ContainerEventResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		l.pending = append(l.pending, event)
		l.poke()
	}
}

func (l *listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (b *broadcaster) listen() *listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &listener{wake: make(chan struct{}, 1)}
	if b.listeners == nil {
		b.listeners = map[*listener]struct{}{}
	}
	b.listeners[l] = struct{}{}
	if b.closed {
		l.poke()
	}
	return l
}

func (b *broadcaster) leave(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}

// take gives the events that wait, and whether there will be more.
func (b *broadcaster) take(l *listener) ([]*cri.ContainerEventResponse, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := l.pending
	l.pending = nil
	return pending, !b.closed
}

func (b *broadcaster) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for l := range b.listeners {
		l.poke()
	}
}

// GetContainerEvents sends an event for each change of a container or sandbox, until the client leaves or the runtime closes.
func (r *Runtime) GetContainerEvents(_ *cri.GetEventsRequest, stream grpc.ServerStreamingServer[cri.ContainerEventResponse]) error {
	l := r.events.listen()
	defer r.events.leave(l)
	return r.sendEvents(stream.Context(), l, stream.Send)
}

func (r *Runtime) sendEvents(ctx context.Context, l *listener, send func(*cri.ContainerEventResponse) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		}
		events, more := r.events.take(l)
		for _, event := range events {
			if err := send(event); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// announce tells that something happened to a container or a sandbox, with the state of the whole pod.
func (r *Runtime) announce(id string, kind cri.ContainerEventType) {
	r.mu.Lock()
	sandboxID := id
	if c := r.containers[id]; c != nil {
		sandboxID = c.record.SandboxID
	}
	s := r.sandboxes[sandboxID]
	r.mu.Unlock()
	if s != nil {
		r.publish(s, id, kind)
	}
}

// announceGone tells that a container was removed.
func (r *Runtime) announceGone(c *container) {
	r.mu.Lock()
	s := r.sandboxes[c.record.SandboxID]
	r.mu.Unlock()
	if s != nil {
		r.publish(s, c.record.ID, cri.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
}

func (r *Runtime) publish(s *sandbox, id string, kind cri.ContainerEventType) {
	event := &cri.ContainerEventResponse{
		ContainerId:        id,
		ContainerEventType: kind,
		CreatedAt:          r.config.Clock.Now().UnixNano(),
		PodSandboxStatus:   r.sandboxStatus(s),
	}
	for _, c := range r.containersOf(s.record.ID) {
		event.ContainersStatuses = append(event.ContainersStatuses, r.containerStatus(c))
	}
	r.events.publish(event)
}
