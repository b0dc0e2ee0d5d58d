package fleet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// Failed writes are tried again after a second, then after twice as long, up to half a minute.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
)

func retryAfter(failures int) time.Duration {
	return min(retryFirst<<min(failures, 5), retryMax)
}

// writePod brings the API to what is reported of a pod: its status, and at its end its deletion.
func (f *Fleet) writePod(ctx context.Context, uid types.UID) {
	object, remove := f.podWrite(uid)
	pods := f.cfg.Client.CoreV1().Pods
	switch {
	case remove:
		err := pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(uid)),
		})
		f.podWritten(ctx, object, nil, err)
	case object != nil:
		written, err := pods(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{})
		f.podWritten(ctx, object, written, err)
	}
}

// podWrite is what has to be written about a pod, nil when there is nothing. The status is sent with the metadata alone: the API takes nothing else of the pod from
// such a request. The resource version in it has the write refused when the pod is not any more what the status was worked out from.
func (f *Fleet) podWrite(uid types.UID) (object *corev1.Pod, remove bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[uid]
	if p == nil || p.node == nil || p.node.silent() {
		return nil, false
	}
	api := p.life.API()
	object = &corev1.Pod{ObjectMeta: api.ObjectMeta, Status: p.life.Status(f.clock.Now())}
	if !equality.Semantic.DeepEqual(&object.Status, &api.Status) {
		// An API that leaves something out of a status is not told the same again.
		if api.ResourceVersion != p.version || !equality.Semantic.DeepEqual(&object.Status, p.sent) {
			return object, false
		}
	}
	if api.DeletionTimestamp != nil && p.life.Ended() && ptr.Deref(api.DeletionGracePeriodSeconds, 1) > 0 {
		return object, true
	}
	return nil, false
}

// podWritten notes what came of a write; written is nil for a deletion.
func (f *Fleet) podWritten(ctx context.Context, sent, written *corev1.Pod, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[sent.UID]
	switch {
	case p == nil || ctx.Err() != nil || apierrors.IsNotFound(err):
	case apierrors.IsConflict(err) && p.life.API().ResourceVersion != sent.ResourceVersion:
		f.writes.pods.Add(sent.UID)
	case err != nil:
		// After a conflict the informer is about to get the newer pod.
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Error(err, "Cannot write a pod; trying again", "pod", klog.KObj(sent))
		}
		f.at(&p.timer, f.clock.Now().Add(retryAfter(p.failures)))
		p.failures++
	case written != nil:
		p.failures, p.sent, p.version = 0, &sent.Status, written.ResourceVersion
		if !older(written, p.life.API()) {
			p.life.Update(written)
		}
		if written.DeletionTimestamp != nil {
			f.writes.pods.Add(sent.UID)
		}
	}
}
