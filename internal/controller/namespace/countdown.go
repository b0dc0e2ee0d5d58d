package namespace

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

// countdowns watches what remains in terminating namespaces and reports a namespace when all that remained of a resource is gone. It
// does not matter if a watch breaks: the namespace is also looked at after a while.
type countdowns struct {
	report  func(namespace string)
	mu      sync.Mutex
	cancels map[string][]context.CancelFunc
	running sync.WaitGroup
}

func newCountdowns(report func(string)) *countdowns {
	return &countdowns{report: report, cancels: map[string][]context.CancelFunc{}}
}

// start watches objects from a list on.
func (c *countdowns) start(ctx context.Context, namespace string, objects metadata.ResourceInterface, from left) {
	ctx, cancel := context.WithTimeout(ctx, recheck)
	c.mu.Lock()
	c.cancels[namespace] = append(c.cancels[namespace], cancel)
	c.mu.Unlock()
	c.running.Go(func() {
		defer cancel()
		w, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: from.resourceVersion})
		if err != nil {
			klog.FromContext(ctx).V(4).Info("No watch on what remains in a namespace", "namespace", namespace, "reason", err.Error())
			return
		}
		defer w.Stop()
		if count(ctx, w, from.count) {
			c.report(namespace)
		}
	})
}

// count reads events until n objects are gone.
func count(ctx context.Context, w watch.Interface, n int) bool {
	for n > 0 {
		select {
		case <-ctx.Done():
			return false
		case event, open := <-w.ResultChan():
			if !open {
				return false
			}
			if event.Type == watch.Deleted {
				n--
			}
		}
	}
	return true
}

func (c *countdowns) stop(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.cancels[namespace] {
		cancel()
	}
	delete(c.cancels, namespace)
}

func (c *countdowns) stopAll() {
	c.mu.Lock()
	for _, cancels := range c.cancels {
		for _, cancel := range cancels {
			cancel()
		}
	}
	clear(c.cancels)
	c.mu.Unlock()
	c.running.Wait()
}
