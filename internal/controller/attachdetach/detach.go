package attachdetach

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bayplan/bayplan/internal/controller"
)

// longestUse is how long a node that is not ready may hold back the detachment of a volume that it said it uses, as in Kubernetes.
const longestUse = 6 * time.Minute

// leaving remembers since when attachments are not needed.
type leaving struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

func newLeaving() *leaving { return &leaving{since: map[types.UID]time.Time{}} }

func (l *leaving) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, uid)
}

// note returns for how long the attachment has not been needed.
func (l *leaving) note(uid types.UID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, found := l.since[uid]
	if !found {
		since = now
		l.since[uid] = now
	}
	return now.Sub(since)
}

// unneeded lists the attachments that no pod needs and that can go.
func (c *Controller) unneeded(needs map[string]*need, present map[string]*storagev1.VolumeAttachment, node *corev1.Node) []*storagev1.VolumeAttachment {
	used := map[string]bool{}
	if node != nil {
		for _, unique := range node.Status.VolumesInUse {
			used[attachmentOf(unique, node.Name)] = true
		}
	}
	var out []*storagev1.VolumeAttachment
	for _, name := range slices.Sorted(maps.Keys(present)) {
		a := present[name]
		switch {
		case needs[name] != nil:
			c.leaving.forget(a.UID)
		case !used[name] || isOut(node) || c.waited(a, node):
			out = append(out, a)
		}
	}
	return out
}

// waited tells whether a node that is not ready has held the volume for long enough. It asks for another look when it will have.
func (c *Controller) waited(a *storagev1.VolumeAttachment, node *corev1.Node) bool {
	left := longestUse - c.leaving.note(a.UID, c.clock.Now())
	if isReady(node) {
		return false // the node will say when it is done
	}
	if left > 0 {
		c.AddAfter(node.Name, left)
	}
	return left <= 0
}

func (c *Controller) detach(ctx context.Context, a *storagev1.VolumeAttachment) error {
	if a.DeletionTimestamp != nil {
		return nil // the driver is at it
	}
	err := c.client.StorageV1().VolumeAttachments().Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete VolumeAttachment %s: %w", a.Name, err)
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// isOut tells whether an administrator has said that the node is out of service: nothing runs there any more.
func isOut(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService && t.Effect == corev1.TaintEffectNoExecute
	})
}
