package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Retry delays of a failing key: 5 ms doubling up to 1000 s, as controllers of Kubernetes have it.
const (
	retryBase = 5 * time.Millisecond
	retryMax  = 1000 * time.Second
)

// Loop is a work queue of keys with the workers that sync them. The same key is never in two workers at once.
type Loop struct {
	name    string
	workers int
	sync    func(ctx context.Context, key string) error
	queue   workqueue.TypedRateLimitingInterface[string]
	synced  []cache.DoneChecker
}

// NewLoop makes a loop that calls sync for each key. name labels its metrics and logs.
func NewLoop(name string, deps Deps, sync func(ctx context.Context, key string) error) *Loop {
	return &Loop{
		name:    name,
		workers: deps.Workers,
		sync:    sync,
		queue:   newQueue(name, deps.Clock),
	}
}

func newQueue(name string, clk clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryBase, retryMax),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, Clock: clk})
}

// Name is the name that the loop was made with.
func (l *Loop) Name() string { return l.name }

// Handle registers handler with informer; the workers wait until it has seen the informer's first list.
func (l *Loop) Handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("controller %s: register an event handler: %w", l.name, err)
	}
	l.synced = append(l.synced, registration.HasSyncedChecker())
	return nil
}

// Reads makes the workers wait for an informer whose cache sync reads without handling its events.
func (l *Loop) Reads(informer cache.SharedIndexInformer) {
	l.synced = append(l.synced, informer.HasSyncedChecker())
}

// Add asks for a sync of key.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAfter asks for a sync of key when d has passed.
func (l *Loop) AddAfter(key string, d time.Duration) { l.queue.AddAfter(key, d) }

// AddRateLimited asks for a sync of key as after a failure.
func (l *Loop) AddRateLimited(key string) { l.queue.AddRateLimited(key) }

// AddObject asks for a sync of the object, which may be a tombstone.
func (l *Loop) AddObject(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("controller %s: %w", l.name, err))
		return
	}
	l.queue.Add(key)
}

// Run waits for the caches and works on keys until ctx is done.
func (l *Loop) Run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName(l.name)
	ctx = klog.NewContext(ctx, logger)
	stopped := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stopped()
	if !cache.WaitFor(ctx, "", l.synced...) {
		l.queue.ShutDown()
		return
	}
	var workers sync.WaitGroup
	for range l.workers {
		workers.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	workers.Wait()
}

func (l *Loop) next(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	err := l.guarded(ctx, key)
	if err == nil {
		l.queue.Forget(key)
		return true
	}
	if ctx.Err() == nil {
		l.report(ctx, key, err)
		l.queue.AddRateLimited(key)
	}
	return true
}

// report logs a failed sync. Conflicts and the like mean that the cache was behind; they are part of normal work.
func (l *Loop) report(ctx context.Context, key string, err error) {
	logger := klog.FromContext(ctx)
	if IsTransient(err) || IsAgain(err) || meta.IsNoMatchError(err) {
		logger.V(4).Info("Sync will be tried again", "key", key, "reason", err.Error())
		return
	}
	logger.Error(err, "Sync failed and will be tried again", "key", key)
}

// guarded turns a panic of one sync into an error, so that one bad object does not stop the controller.
func (l *Loop) guarded(ctx context.Context, key string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("controller %s: sync of %q panicked: %v", l.name, key, r)
			klog.FromContext(ctx).Error(err, "Panic in sync", "key", key)
		}
	}()
	return l.sync(ctx, key)
}
