package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/translate"
)

const (
	// relistPeriod is how often all of the runtime is looked at in case an event was lost; without events it is the only source.
	relistPeriod       = time.Minute
	relistWithoutEvent = time.Second
	reconnectAfter     = time.Second
)

// watchRuntime brings the runtime's events to the workers, and looks at all of it from time to time.
func (p *pods) watchRuntime(ctx context.Context) {
	clock := p.node.cfg.Clock
	digests := map[types.UID]string{}
	for ctx.Err() == nil {
		ended := make(chan error, 1)
		go func() { ended <- p.listen(ctx) }()
		err := p.relistUntil(ctx, ended, digests)
		if status.Code(err) == codes.Unimplemented {
			p.relistForever(ctx, digests)
			return
		}
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("The runtime's events ended; connecting again", "err", err)
			select {
			case <-ctx.Done():
			case <-clock.After(reconnectAfter):
			}
			p.relist(ctx, digests)
		}
	}
}

// relistUntil relists until the events end.
func (p *pods) relistUntil(ctx context.Context, ended <-chan error, digests map[types.UID]string) error {
	for {
		select {
		case err := <-ended:
			return err
		case <-p.node.cfg.Clock.After(relistPeriod):
			p.relist(ctx, digests)
		}
	}
}

// relistForever serves runtimes that have no events.
func (p *pods) relistForever(ctx context.Context, digests map[types.UID]string) {
	klog.FromContext(ctx).Info("The runtime sends no events; looking at it once a second")
	for {
		p.relist(ctx, digests)
		select {
		case <-ctx.Done():
			return
		case <-p.node.cfg.Clock.After(relistWithoutEvent):
		}
	}
}

// listen hands events on until the stream ends.
func (p *pods) listen(ctx context.Context) error {
	return p.node.cfg.Runtime.GetContainerEvents(&cri.GetEventsRequest{}, &eventStream{ctx: ctx, take: func(e *cri.ContainerEventResponse) {
		if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
			p.poke(types.UID(uid))
			return
		}
		p.pokeAll()
	}})
}

func (p *pods) pokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		w.Poke()
	}
}

// eventStream is the agent's end of a stream within the process.
type eventStream struct {
	grpc.ServerStream
	ctx  context.Context
	take func(*cri.ContainerEventResponse)
}

func (s *eventStream) Context() context.Context { return s.ctx }

func (s *eventStream) Send(e *cri.ContainerEventResponse) error {
	s.take(e)
	return s.ctx.Err()
}

// relist pokes the workers of the pods that changed since the last one.
func (p *pods) relist(ctx context.Context, digests map[types.UID]string) {
	sandboxes, containers, err := p.listRuntime(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.node.failures.Error(ctx, err, "Cannot list what the runtime has")
		}
		return
	}
	next := map[types.UID]string{}
	for _, s := range sandboxes {
		uid := types.UID(s.Labels[translate.LabelPodUID])
		next[uid] += fmt.Sprintf("%s=%d ", s.Id, s.State)
	}
	for _, c := range containers {
		uid := types.UID(c.Labels[translate.LabelPodUID])
		next[uid] += fmt.Sprintf("%s=%d ", c.Id, c.State)
	}
	for uid, d := range next {
		if digests[uid] != d {
			p.poke(uid)
		}
	}
	for uid := range digests {
		if _, ok := next[uid]; !ok {
			p.poke(uid)
		}
	}
	clear(digests)
	for uid, d := range next {
		digests[uid] = d
	}
}

func (p *pods) listRuntime(ctx context.Context) ([]*cri.PodSandbox, []*cri.Container, error) {
	sandboxes, err := p.node.cfg.Runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("list sandboxes: %w", err)
	}
	containers, err := p.node.cfg.Runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("list containers: %w", err)
	}
	return sandboxes.Items, containers.Containers, nil
}

// look finds the pods that the runtime has: as much as it knows of each.
func (p *pods) look(ctx context.Context) (map[types.UID]*v1.Pod, error) {
	sandboxes, containers, err := p.listRuntime(ctx)
	if err != nil {
		return nil, errors.Join(errors.New("cannot see what the runtime has"), err)
	}
	known := map[types.UID]*v1.Pod{}
	for _, s := range sandboxes {
		uid := types.UID(s.Labels[translate.LabelPodUID])
		if uid != "" && known[uid] == nil {
			known[uid] = orphan(uid, s.GetMetadata().GetNamespace(), s.GetMetadata().GetName())
		}
	}
	for _, c := range containers {
		meta := translate.MetaOf(c.Labels, c.Annotations)
		if pod := known[meta.PodUID]; pod != nil {
			addOrphanContainer(pod, meta)
		}
	}
	return known, nil
}
