package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"golang.org/x/sync/errgroup"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/manifest"
)

// keepGroup brings the nodes of a NodeGroup to their number. When the group is gone, the garbage collector takes its nodes.
func (f *Fleet) keepGroup(ctx context.Context, name string) {
	u, err := f.group(name)
	if u == nil || err != nil {
		return
	}
	changed, err := f.tryKeepGroup(ctx, u)
	if err == nil {
		f.objects.changed.Forget(name)
		if changed {
			// What was not known yet of nodes that come and go is looked at once more.
			f.objects.changed.AddAfter(name, groupLook)
		}
		return
	}
	if ctx.Err() == nil {
		f.cfg.Recorder.Event(u, corev1.EventTypeWarning, "Failed", err.Error())
		klog.FromContext(ctx).Error(err, "Cannot make the nodes of a NodeGroup; trying again", "nodeGroup", name)
		f.objects.changed.AddRateLimited(name)
	}
}

func (f *Fleet) group(name string) (*unstructured.Unstructured, error) {
	obj, there, err := f.objects.groups.GetStore().GetByKey(name)
	if err != nil || !there {
		return nil, err
	}
	return obj.(*unstructured.Unstructured), nil
}

// groupLook is how long after a change a group is looked at again.
const groupLook = 5 * time.Second

func (f *Fleet) tryKeepGroup(ctx context.Context, u *unstructured.Unstructured) (changed bool, err error) {
	var g v1alpha1.NodeGroup
	if err := decode(u, &g); err != nil || g.DeletionTimestamp != nil {
		return false, err
	}
	wanted, err := manifest.Nodes(&g, 1)
	if err != nil {
		return false, err
	}
	surplus := f.nodesOf(g.UID)
	makers, making := errgroup.WithContext(ctx)
	makers.SetLimit(f.cfg.Writers)
	for _, n := range wanted {
		if i := slices.Index(surplus, n.Name); i >= 0 {
			surplus = slices.Delete(surplus, i, i+1)
			continue
		}
		n.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.APIVersion, Kind: "NodeGroup", Name: g.Name, UID: g.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
		f.dress(n)
		changed = true
		makers.Go(func() error { return f.makeGroupNode(making, n, g.UID) })
	}
	for _, name := range surplus {
		changed = true
		makers.Go(func() error {
			err := f.cfg.Client.CoreV1().Nodes().Delete(making, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := makers.Wait(); err != nil {
		return changed, err
	}
	return changed, f.tellGroup(ctx, u, int32(len(wanted)))
}

// makeGroupNode makes a node that the informer does not have. If there is one, it must be this group's.
func (f *Fleet) makeGroupNode(ctx context.Context, n *corev1.Node, group types.UID) error {
	_, err := f.cfg.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	f.mu.Lock()
	f.nodeIPs.free(addressOf(n))
	f.mu.Unlock()
	if apierrors.IsAlreadyExists(err) {
		have, getErr := f.cfg.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if getErr == nil && ownedBy(have, group) {
			return nil
		}
		err = fmt.Errorf("there is a node of that name which does not belong to the group: %w", err)
	}
	return fmt.Errorf("node %s: %w", n.Name, err)
}

func ownedBy(n *corev1.Node, group types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(n)
	return owner != nil && owner.UID == group
}

// nodesOf are the names of a group's nodes, in order.
func (f *Fleet) nodesOf(group types.UID) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name, n := range f.nodes {
		if ownedBy(n.api, group) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tellGroup writes the group's status.
func (f *Fleet) tellGroup(ctx context.Context, u *unstructured.Unstructured, nodes int32) error {
	if have, ok, _ := unstructured.NestedInt64(u.Object, "status", "nodes"); ok && have == int64(nodes) {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"nodes":%d}}`, u.GetUID(), nodes)
	_, err := f.cfg.Dynamic.Resource(v1alpha1.NodeGroups).Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// groupChanged has the group looked at to which a node belonged that is gone.
func (f *Fleet) groupChanged(n *corev1.Node) {
	if f.objects == nil {
		return
	}
	if owner := metav1.GetControllerOfNoCopy(n); owner != nil && owner.Kind == "NodeGroup" {
		f.objects.changed.Add(owner.Name)
	}
}
