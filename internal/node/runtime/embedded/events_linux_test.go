package embedded

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventStream is a client of GetContainerEvents in this process.
type eventStream struct {
	grpc.ServerStream
	ctx    context.Context
	events chan *cri.ContainerEventResponse
}

func (s *eventStream) Context() context.Context { return s.ctx }

func (s *eventStream) Send(event *cri.ContainerEventResponse) error {
	s.events <- event
	return nil
}

func TestEvents(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := &eventStream{ctx: ctx, events: make(chan *cri.ContainerEventResponse, 100)}
	done := make(chan error, 1)
	go func() { done <- f.r.GetContainerEvents(&cri.GetEventsRequest{}, s) }()
	f.eventually("a listener", func() bool {
		f.r.events.mu.Lock()
		defer f.r.events.mu.Unlock()
		return len(f.r.events.listeners) > 0
	})
	pod := f.pod()
	id := f.run(pod, containerConfig("main", "exit", "3"))
	f.wait(id)
	if _, err := f.r.RemovePodSandbox(t.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{pod: "pod", id: "main"}
	var got []string
	for range 8 {
		event := <-s.events
		line := names[event.ContainerId] + " " + strings.TrimSuffix(strings.TrimPrefix(event.ContainerEventType.String(), "CONTAINER_"), "_EVENT")
		if event.ContainerId == id && event.ContainerEventType == cri.ContainerEventType_CONTAINER_STOPPED_EVENT && event.ContainersStatuses[0].ExitCode != 3 {
			t.Errorf("the event does not have the exit code: %v", event)
		}
		got = append(got, line)
	}
	want := []string{"pod CREATED", "pod STARTED", "main CREATED", "main STARTED", "main STOPPED", "pod STOPPED", "main DELETED", "pod DELETED"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestEventsEndWithTheRuntime(t *testing.T) {
	f := newFixture(t)
	s := &eventStream{ctx: t.Context(), events: make(chan *cri.ContainerEventResponse, 100)}
	done := make(chan error, 1)
	r := f.r
	go func() { done <- r.GetContainerEvents(&cri.GetEventsRequest{}, s) }()
	f.reopen()
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}
