// Package bind talks to the API server on behalf of the scheduler: it binds pods to nodes, and tells on the pods that fit
// nowhere why.
//
//	the owner ──► Pool (a bounded number of workers, an unbounded list of work) ──► API server
//	   ▲                                   │
//	   └──────── done, with the error ◄────┘
package bind

import (
	"context"
	"sync"

	"github.com/bayplan/bayplan/internal/scheduler/source"
)

// Pool runs work on a bounded number of goroutines.
type Pool struct {
	work    *source.Mailbox[func(context.Context)]
	workers int
}

// NewPool returns a pool that has not been started.
func NewPool(workers int) *Pool {
	return &Pool{work: source.NewMailbox[func(context.Context)](), workers: workers}
}

// Do has work done as soon as a worker is free. It does not wait.
func (p *Pool) Do(work func(context.Context)) { p.work.Put(work) }

// Run works until the context ends and returns when all workers have stopped. Work that no worker has begun is dropped.
func (p *Pool) Run(ctx context.Context) {
	feed := make(chan func(context.Context))
	var workers sync.WaitGroup
	for range p.workers {
		workers.Go(func() {
			for work := range feed {
				work(ctx)
			}
		})
	}
	p.feed(ctx, feed)
	close(feed)
	workers.Wait()
}

func (p *Pool) feed(ctx context.Context, feed chan<- func(context.Context)) {
	var batch []func(context.Context)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.work.Ready():
		}
		batch = p.work.Take(batch)
		for _, work := range batch {
			select {
			case <-ctx.Done():
				return
			case feed <- work:
			}
		}
	}
}
