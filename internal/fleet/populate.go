package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"golang.org/x/sync/errgroup"

	"github.com/bayplan/bayplan/internal/fleet/manifest"
)

// populate makes the nodes of the groups that are not there, and goes on trying until all are.
func (f *Fleet) populate(ctx context.Context) {
	log := klog.FromContext(ctx)
	for failures := 0; ; failures++ {
		err := f.tryPopulate(ctx)
		if err == nil {
			close(f.populated)
			return
		}
		if ctx.Err() != nil {
			return
		}
		log.Error(err, "Cannot make the simulated nodes; trying again")
		select {
		case <-ctx.Done():
			return
		case <-f.clock.After(retryAfter(failures)):
		}
	}
}

func (f *Fleet) tryPopulate(ctx context.Context) error {
	makers, making := errgroup.WithContext(ctx)
	makers.SetLimit(f.cfg.Writers)
	for i := range f.cfg.Groups {
		nodes, err := manifest.Nodes(&f.cfg.Groups[i], 1)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if !f.hasNode(n.Name) {
				f.dress(n)
				makers.Go(func() error { return f.makeNode(making, n) })
			}
		}
	}
	return makers.Wait()
}

func (f *Fleet) hasNode(name string) bool {
	_, there, err := f.informer.nodes.GetStore().GetByKey(name)
	return err == nil && there
}

// dress gives a node an address and its whole status: nodes register with it, and so are Ready from their first moment.
func (f *Fleet) dress(n *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	address := addressOf(n)
	if address == "" {
		address, _ = f.nodeIPs.take()
	}
	n.Status = f.status(n, address, nil, f.clock.Now())
}

// makeNode registers a node.
func (f *Fleet) makeNode(ctx context.Context, n *corev1.Node) error {
	_, err := f.cfg.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodeIPs.free(addressOf(n))
	return fmt.Errorf("node %s: %w", n.Name, err)
}
