package replicas

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil //nolint:nilerr // a key of ours always splits
	}
	set, err := c.kind.Get(namespace, name)
	if apierrors.IsNotFound(err) {
		c.expectations.Forget(key)
		return nil
	} else if err != nil {
		return err
	}
	if settled, left := c.expectations.Satisfied(key); !settled {
		// Neither acting nor reporting makes sense before our own writes show: the status must never claim fewer pods than there
		// are, as Deployments count on it. The pods' events come long before the time is over.
		c.AddAfter(key, left)
		return nil
	}
	pods, err := c.claim(ctx, set)
	if err != nil {
		return err
	}
	c.sizes.Store(key, len(pods))
	var failure error
	if set.Object.GetDeletionTimestamp() == nil {
		failure = c.scale(ctx, key, set, controller.ActivePods(pods))
	}
	if err := c.report(ctx, key, set, pods, failure); err != nil {
		return errors.Join(failure, err)
	}
	if failure != nil && controller.IsNamespaceTerminating(failure) {
		return nil
	}
	return failure
}

// scale makes or removes pods.
func (c *Controller) scale(ctx context.Context, key string, set *Set, active []*corev1.Pod) error {
	switch diff := len(active) - int(set.Replicas); {
	case diff < 0:
		return c.create(ctx, key, set, min(-diff, Burst))
	case diff > 0:
		return c.remove(ctx, key, set, active, min(diff, Burst))
	}
	return nil
}

func (c *Controller) create(ctx context.Context, key string, set *Set, count int) error {
	gvk := c.kind.GVK()
	_, err := controller.SlowStart(count, func() error {
		c.expectations.Creating(key)
		pod, err := c.control.Create(ctx, set.Object, controller.PodFromTemplate(set.Template, set.Object, gvk))
		if err != nil {
			c.expectations.CreateFailed(key)
			return err
		}
		c.expectations.Created(key, pod.UID)
		return nil
	})
	return err
}

func (c *Controller) remove(ctx context.Context, key string, set *Set, active []*corev1.Pod, count int) error {
	around := controller.Neighbourhood{Zone: c.zone}
	for _, uid := range c.kind.Related(set) {
		around.Related = append(around.Related, controller.Owned[*corev1.Pod](c.pods, uid)...)
	}
	victims := active
	if count < len(active) {
		victims = controller.RankForDeletion(active, around, c.clock.Now())[:count]
	}
	for _, pod := range victims {
		c.expectations.Deleting(key, pod.UID)
	}
	errs := make(chan error, len(victims))
	var calls sync.WaitGroup
	for _, pod := range victims {
		calls.Go(func() {
			if err := c.control.Delete(ctx, set.Object, pod); err != nil {
				c.expectations.DeleteFailed(key, pod.UID)
				errs <- controller.IgnoreNotFound(err)
			}
		})
	}
	calls.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
