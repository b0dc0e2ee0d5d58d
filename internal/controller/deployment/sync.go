package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	cached, err := c.deployments.Deployments(namespace).Get(name)
	if err != nil {
		c.creations.Forget(key)
		return controller.IgnoreNotFound(err)
	}
	if settled, left := c.creations.Satisfied(key); !settled {
		c.AddAfter(key, left) // the event of the ReplicaSet that we made comes long before
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(cached.Spec.Selector)
	if err != nil {
		return fmt.Errorf("deployment %s: spec.selector: %w", key, err)
	}
	if selector.Empty() {
		c.recorder.Event(cached, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
		return nil
	}
	sets, err := c.claim(ctx, cached, selector)
	if err != nil {
		return err
	}
	for _, rs := range sets {
		if c.fresh.Stale(rs) {
			return nil // the event of our own write is on its way and brings us back
		}
	}
	r := newRollout(c, cached, sets)
	failure := r.step(ctx)
	if err := r.writeStatus(ctx); err != nil {
		return err
	}
	if failure != nil && controller.IsNamespaceTerminating(failure) {
		return nil
	}
	return failure
}

func (c *Controller) claim(ctx context.Context, d *appsv1.Deployment, selector labels.Selector) ([]*appsv1.ReplicaSet, error) {
	candidates := append(controller.Owned[*appsv1.ReplicaSet](c.setIndex, d.UID),
		controller.Orphans[*appsv1.ReplicaSet](c.setIndex, d.Namespace)...)
	claimer := controller.Claimer[*appsv1.ReplicaSet]{
		Owner: d, Kind: gvk, Selector: selector,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, rs *appsv1.ReplicaSet, kind types.PatchType, patch []byte) error {
			_, err := c.client.AppsV1().ReplicaSets(rs.Namespace).Patch(ctx, rs.Name, kind, patch, metav1.PatchOptions{})
			return err
		},
	}
	sets, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the ReplicaSets of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return sets, nil
}

// step does what can be done now.
func (r *rollout) step(ctx context.Context) error {
	if r.d.DeletionTimestamp != nil {
		return nil
	}
	r.notePause()
	if r.d.Spec.Paused || r.resized() {
		if err := r.syncRevision(ctx, false); err != nil {
			return err
		}
		if err := r.resize(ctx); err != nil {
			return err
		}
		if r.d.Spec.Paused {
			return r.cleanUp(ctx)
		}
		return nil
	}
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return r.recreate(ctx)
	}
	return r.roll(ctx)
}

// writeStatus writes what changed, in one call, and asks for a sync at the progress deadline.
func (r *rollout) writeStatus(ctx context.Context) error {
	r.updateStatus()
	r.c.awaitDeadline(r)
	if equality.Semantic.DeepEqual(r.d.Status, r.cached.Status) && r.d.Annotations[RevisionAnnotation] == r.cached.Annotations[RevisionAnnotation] {
		return nil
	}
	_, err := r.c.client.AppsV1().Deployments(r.d.Namespace).UpdateStatus(ctx, r.d, metav1.UpdateOptions{})
	return err
}
