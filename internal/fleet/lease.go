package fleet

import (
	"context"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// writeLease renews a node's lease by one request, if nobody else has written it.
func (f *Fleet) writeLease(ctx context.Context, name string) {
	lease := f.wantedLease(name)
	if lease == nil {
		return
	}
	leases := f.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	var written *coordination.Lease
	var err error
	if lease.ResourceVersion == "" {
		written, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		written, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		// It is there, from a fleet before this one, or was changed.
		if written, err = leases.Get(ctx, name, metav1.GetOptions{}); err == nil {
			lease.ResourceVersion, lease.UID = written.ResourceVersion, written.UID
			written, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
	}
	f.leaseWritten(ctx, name, written, err)
}

// wantedLease is the lease as it has to be written, nil when the node sends none.
func (f *Fleet) wantedLease(name string) *coordination.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil || n.silent() {
		return nil
	}
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: corev1.NamespaceNodeLease,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: n.api.UID}},
	}}
	if n.lease != nil {
		lease.ObjectMeta = n.lease.ObjectMeta
	}
	lease.Spec = coordination.LeaseSpec{
		HolderIdentity: &name, RenewTime: ptr.To(metav1.NewMicroTime(f.clock.Now())),
		LeaseDurationSeconds: ptr.To(int32(4 * f.cfg.LeasePeriod / time.Second)),
	}
	return lease
}

func (f *Fleet) leaseWritten(ctx context.Context, name string, written *coordination.Lease, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil || ctx.Err() != nil {
		return
	}
	if err == nil {
		written.ManagedFields = nil
		n.lease = written
		return
	}
	n.lease = nil
	klog.FromContext(ctx).Error(err, "Cannot write the lease of a node; trying again", "node", name)
	f.at(&n.heartbeat, f.clock.Now().Add(retryFirst))
}
